#include "internal/arrays.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "../../engine/array/shape.hpp"

namespace tapegrad::detail {
namespace {

using nlohmann::json;

std::size_t pooled_extent(std::size_t extent, std::size_t factor) { return (extent + factor - 1) / factor; }

Shape pooled_shape(const Shape& shape, const std::vector<std::size_t>& pooled) {
  Shape out = shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) out[axis] = pooled_extent(shape[axis], pooled[axis]);
  return out;
}

// The means of blocks of `pooled` places along each axis.
template <class T> std::vector<float> averaged(const Array<T>& array, const std::vector<std::size_t>& pooled) {
  const Shape& shape = array.shape();
  const Shape out = pooled_shape(shape, pooled);
  std::vector<double> sums(element_count(out));
  std::vector<std::size_t> counts(sums.size());
  std::vector<std::size_t> index(shape.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    std::size_t block = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) block = block * out[axis] + index[axis] / pooled[axis];
    sums[block] += static_cast<double>(array.data()[i]);
    ++counts[block];
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  std::vector<float> means(sums.size());
  for (std::size_t i = 0; i < means.size(); ++i)
    means[i] = static_cast<float>(sums[i] / static_cast<double>(counts[i]));
  return means;
}

// Of little-endian float32.
std::string base64(const std::vector<float>& numbers) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((numbers.size() * 4 + 2) / 3 * 4);
  std::uint32_t bits = 0;
  int bytes = 0;
  const auto flush = [&] {
    for (int digit = 0; digit < 4; ++digit) out += digit <= bytes ? digits[bits >> (18 - 6 * digit) & 63] : '=';
    bits = 0;
    bytes = 0;
  };
  for (const float number : numbers) {
    const auto word = std::bit_cast<std::uint32_t>(number);
    for (int byte = 0; byte < 4; ++byte) {
      bits |= (word >> (8 * byte) & 255) << (16 - 8 * bytes);
      if (++bytes == 3) flush();
    }
  }
  if (bytes > 0) flush();
  return out;
}

// Of all numbers; those that are not finite are counted alone.
template <class T> json statistics(const Array<T>& array) {
  std::size_t zeros = 0, nan = 0, infinite = 0, finite = 0;
  double least = std::numeric_limits<double>::infinity(), largest = -least, mean = 0, squared_deviations = 0,
         squares = 0;
  for (const T element : array) {
    const auto x = static_cast<double>(element);
    zeros += x == 0;
    nan += std::isnan(x);
    infinite += std::isinf(x);
    if (!std::isfinite(x)) continue;
    least = std::min(least, x);
    largest = std::max(largest, x);
    squares += x * x;
    const double from_mean = x - mean;  // Welford's update, which loses no digits to a large mean
    mean += from_mean / static_cast<double>(++finite);
    squared_deviations += from_mean * (x - mean);
  }
  const auto of_finite = [finite](double number) { return finite > 0 ? json(number) : json(); };
  return {{"count", array.size()},
          {"least", of_finite(least)},
          {"largest", of_finite(largest)},
          {"mean", of_finite(mean)},
          {"deviation", of_finite(std::sqrt(squared_deviations / static_cast<double>(finite)))},
          {"norm", of_finite(std::sqrt(squares))},
          {"zeros", zeros},
          {"nan", nan},
          {"infinite", infinite}};
}

}  // namespace

std::vector<std::size_t> pooling(const Shape& shape, std::size_t most) {
  std::vector<std::size_t> pooled(shape.size(), 1);
  while (pooled_size(shape, pooled) > most) {
    std::size_t longest = 0;
    for (std::size_t axis = 1; axis < shape.size(); ++axis)
      if (pooled_extent(shape[axis], pooled[axis]) > pooled_extent(shape[longest], pooled[longest])) longest = axis;
    pooled[longest] *= 2;
  }
  return pooled;
}

std::size_t pooled_size(const Shape& shape, const std::vector<std::size_t>& pooled) {
  return element_count(pooled_shape(shape, pooled));
}

template <class T> json array_json(const Array<T>& array, std::size_t most) {
  const std::vector<std::size_t> pooled = pooling(array.shape(), most);
  const Shape shape = pooled_shape(array.shape(), pooled);
  json out{{"shape", std::vector<std::size_t>(shape.begin(), shape.end())},
           {"data", base64(averaged(array, pooled))},
           {"statistics", statistics(array)}};
  if (std::ranges::any_of(pooled, [](std::size_t factor) { return factor > 1; })) out["pooled"] = pooled;
  return out;
}

template json array_json(const Array<float>&, std::size_t);
template json array_json(const Array<double>&, std::size_t);

}  // namespace tapegrad::detail
