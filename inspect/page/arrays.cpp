#include "internal/arrays.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

#include "../../engine/array/array.hpp"

namespace tapegrad::detail {
namespace {

std::size_t pooled_extent(std::size_t extent, std::size_t factor) { return (extent + factor - 1) / factor; }

Shape pooled_shape(const Shape& shape, const std::vector<std::size_t>& pooled) {
  Shape out = shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) out[axis] = pooled_extent(shape[axis], pooled[axis]);
  return out;
}

// The means of blocks of `pooled` elements along each axis.
template <class T> std::vector<float> averaged(const Array<T>& array, const std::vector<std::size_t>& pooled) {
  if (std::ranges::all_of(pooled, [](std::size_t factor) { return factor == 1; })) return {array.begin(), array.end()};
  const Shape& shape = array.shape();
  const Shape out = pooled_shape(shape, pooled);
  std::vector<double> sums(element_count(out));
  std::vector<std::size_t> counts(sums.size());
  std::vector<std::size_t> index(shape.size());
  const std::size_t last = shape.size() - 1;
  for (const T* row = array.data(); row != array.data() + array.size(); row += shape[last]) {
    std::size_t block = 0;
    for (std::size_t axis = 0; axis < last; ++axis) block = block * out[axis] + index[axis] / pooled[axis];
    block *= out[last];
    for (std::size_t begin = 0; begin < shape[last]; begin += pooled[last], ++block) {
      const std::size_t count = std::min(pooled[last], shape[last] - begin);
      sums[block] = std::accumulate(row + begin, row + begin + count, sums[block]);
      counts[block] += count;
    }
    for (std::size_t axis = last; axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  std::vector<float> means(sums.size());
  for (std::size_t i = 0; i < means.size(); ++i)
    means[i] = static_cast<float>(sums[i] / static_cast<double>(counts[i]));
  return means;
}

// Base64 of little-endian float32.
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

// Over all numbers; counts the non-finite ones separately.
struct Range {
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
  std::size_t zeros = 0, nan = 0, infinite = 0;
};

template <class T> Range range_of(const Array<T>& array) {
  Range range;
  for (const T* x = array.data(); x != array.data() + array.size(); ++x) {
    const auto number = static_cast<double>(*x);
    if (!std::isfinite(number)) {
      ++(std::isnan(number) ? range.nan : range.infinite);
      continue;
    }
    range.zeros += number == 0;
    range.smallest = std::min(range.smallest, number);
    range.largest = std::max(range.largest, number);
  }
  return range;
}

// Over finite numbers.
struct Moments {
  std::size_t count = 0;
  double mean = 0, squared_deviations = 0;

  // Chan's update, accurate even with a large mean.
  void add(const Moments& other) {
    if (other.count == 0) return;
    const double from_mean = other.mean - mean, part = static_cast<double>(other.count);
    const double before = static_cast<double>(count), all = before + part;
    count += other.count;
    mean += from_mean * (part / all);
    squared_deviations += other.squared_deviations + from_mean * from_mean * (before * part / all);
  }
};

template <class T> JsonObject statistics(const Array<T>& array) {
  constexpr std::size_t kBlock = 512;  // two passes per block avoid a division per number
  const Range range = range_of(array);
  // An exact scaling by a power of two keeps the sum of squares from overflow and underflow.
  const double magnitude = std::max(-range.smallest, range.largest);
  const int exponent = magnitude > 0 ? std::clamp(std::ilogb(magnitude), -1000, 1000) : 0;
  const double scale = std::ldexp(1.0, -exponent);
  double squares = 0;
  Moments moments;
  std::array<double, kBlock> finite;
  const T* const end = array.data() + array.size();
  for (const T* x = array.data(); x != end;) {
    std::size_t count = 0;
    double sum = 0;
    for (const T* const stop = x + std::min<std::ptrdiff_t>(kBlock, end - x); x != stop; ++x) {
      const double number = static_cast<double>(*x) * scale;
      if (!std::isfinite(number)) continue;
      squares += number * number;
      sum += number;
      finite[count++] = number;
    }
    Moments block{count, count > 0 ? sum / static_cast<double>(count) : 0, 0};
    for (std::size_t i = 0; i < count; ++i)
      block.squared_deviations += (finite[i] - block.mean) * (finite[i] - block.mean);
    moments.add(block);
  }
  const double variance = moments.squared_deviations / static_cast<double>(moments.count);
  const auto number_or_null = [&](double number) { return moments.count > 0 ? Json(number) : Json(); };
  return {{"count", array.size()},
          {"least", number_or_null(range.smallest)},
          {"largest", number_or_null(range.largest)},
          {"mean", number_or_null(std::ldexp(moments.mean, exponent))},
          {"deviation", number_or_null(std::ldexp(std::sqrt(variance), exponent))},
          {"norm", number_or_null(std::ldexp(std::sqrt(squares), exponent))},
          {"zeros", range.zeros},
          {"nan", range.nan},
          {"infinite", range.infinite}};
}

}  // namespace

std::vector<std::size_t> pooling(const Shape& shape, std::size_t max_size) {
  std::vector<std::size_t> pooled(shape.size(), 1);
  while (pooled_size(shape, pooled) > max_size) {
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

template <class T> Json array_json(const Array<T>& array, std::size_t max_size) {
  const std::vector<std::size_t> pooled = pooling(array.shape(), max_size);
  const Shape shape = pooled_shape(array.shape(), pooled);
  JsonObject out{{"shape", shape},
                 {"data", Json::plain_string(base64(averaged(array, pooled)))},
                 {"statistics", statistics(array)}};
  if (std::ranges::any_of(pooled, [](std::size_t factor) { return factor > 1; })) out["pooled"] = pooled;
  return out;
}

template Json array_json(const Array<float>&, std::size_t);
template Json array_json(const Array<double>&, std::size_t);

}  // namespace tapegrad::detail
