#include <algorithm>
#include <cmath>
#include <string>

#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::chunks_for, detail::parallel_for, detail::require, detail::require_in_range;

// Checks ids and returns rows of the weight, called `shown` in errors.
template <class T, class W> Array<T> rows_of(const Array<W>& weight, const IntArray& ids, const auto& shown) {
  require(weight.dimension() == 2, "embedding", "expected a weight of shape (rows, width), got ", weight.shape());
  const std::size_t rows = weight.shape()[0], width = weight.shape()[1];
  for (std::int64_t id : ids)
    require_in_range(id >= 0 && static_cast<std::size_t>(id) < rows, "embedding", "expected ids from 0 to ",
                     static_cast<std::ptrdiff_t>(rows) - 1, " for ", shown, ", got ", id);
  Shape shape = ids.shape();
  shape.push_back(width);
  auto y = detail::uninitialized<T>("embedding", shape);
  parallel_for(ids.size(), chunks_for(y.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      std::copy_n(weight.data() + static_cast<std::size_t>(ids.data()[i]) * width, width, y.data() + i * width);
  });
  return y;
}

}  // namespace

// The product with one_hot(ids)ᵀ is a scatter-add: dW[ids_i] += dy_i.
template <class T>
Tensor<T> embedding(const Tensor<T>& weight, const IntArray& ids, std::optional<std::int64_t> padding_idx) {
  auto y = rows_of<T>(weight.value(), ids, weight);
  const std::size_t rows = weight.shape()[0], width = weight.shape()[1];
  require_in_range(!padding_idx || (*padding_idx >= 0 && static_cast<std::size_t>(*padding_idx) < rows), "embedding",
                   "expected a padding_idx from 0 to ", static_cast<std::ptrdiff_t>(rows) - 1, ", got ",
                   padding_idx.value_or(0));
  return record(
      {"embedding", "y = W[ids]; dW = one_hot(ids)ᵀ dy"}, std::move(y), {weight},
      [ids = ids, padding_idx, width](const Array<T>& dy, auto& dx) {
        T* dw = detail::zeroed_destination(dx[0]);
        const auto& loops = detail::vector_loops<T>();
        // Parallel over columns: ids may repeat, so threads with different rows of dy would race for a row of dW.
        const std::size_t chunks = std::min(chunks_for(dy.size()), (width + 127) / 128);
        parallel_for(width, chunks, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = 0; i < ids.size(); ++i) {
            const std::int64_t id = ids.data()[i];
            if (id == padding_idx) continue;
            loops.add(dy.data() + i * width + begin, dw + static_cast<std::size_t>(id) * width + begin, end - begin);
          }
        });
      },
      [&](auto& arguments) { arguments.add("ids", ids).add("padding_idx", padding_idx); });
}

template <class T> Tensor<T> embedding(const Value<BFloat16>& weight, const IntArray& ids, std::string_view name) {
  return rows_of<T>(*weight, ids,
                    [&] { return std::string(name) + (name.empty() ? "" : " ") + to_string(weight->shape()); });
}

IntArray one_hot(const IntArray& ids, std::size_t classes) {
  Shape shape = ids.shape();
  shape.push_back(classes);
  auto out = detail::uninitialized<std::int64_t>("one_hot", shape);
  out.fill(0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t id = ids.data()[i];
    require_in_range(id >= 0 && static_cast<std::size_t>(id) < classes, "one_hot", "expected ids from 0 to ",
                     static_cast<std::ptrdiff_t>(classes) - 1, ", got ", id);
    out.data()[i * classes + static_cast<std::size_t>(id)] = 1;
  }
  return out;
}

namespace {

// (positions, D): for each position the cosines of its D / 2 angles, then their sines. Large angles would lose their
// digits in float.
template <class T> Array<T> make_cos_sin(std::size_t positions, std::size_t width, const RotaryOptions& options) {
  if (positions == 0) return Array<T>(Shape{0, width});
  const std::size_t half = width / 2;
  Array<double> frequencies(Shape{half});
  for (std::size_t i = 0; i < half; ++i)
    frequencies.data()[i] = std::pow(options.base, -2 * static_cast<double>(i) / static_cast<double>(width));
  Array<T> cos_sin(Shape{positions, width});
  constexpr std::size_t kWork = 32;  // cost of a cosine and a sine, in elementary steps
  parallel_for(positions, chunks_for(positions * half * kWork), [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      T *cosines = cos_sin.data() + t * width, *sines = cosines + half;
      for (std::size_t i = 0; i < half; ++i) {
        const double angle = (static_cast<double>(options.first) + static_cast<double>(t)) * frequencies.data()[i];
        cosines[i] = static_cast<T>(std::cos(angle));
        sines[i] = static_cast<T>(std::sin(angle));
      }
    }
  });
  return cos_sin;
}

// x with every pair of elements rotated, in all heads of all rows; in reverse if the direction is -1.
// x: (B, T, H D), cos_sin: (T, D)
template <class T> Array<T> rotated(const Array<T>& x, const Array<T>& cos_sin, T direction) {
  Array<T> y(x.shape());
  if (x.size() == 0) return y;
  const std::size_t columns = x.shape()[2], width = cos_sin.shape()[1], half = width / 2, times = x.shape()[1];
  parallel_for(x.size() / columns, chunks_for(x.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const T *cosines = cos_sin.data() + row % times * width, *sines = cosines + half;
      for (std::size_t head = row * columns; head < (row + 1) * columns; head += width) {
        const T *a = x.data() + head, *b = a + half;
        T *c = y.data() + head, *d = c + half;
        for (std::size_t i = 0; i < half; ++i) {
          const T sine = direction * sines[i];
          c[i] = a[i] * cosines[i] - b[i] * sine;
          d[i] = b[i] * cosines[i] + a[i] * sine;
        }
      }
    }
  });
  return y;
}

}  // namespace

template <class T> Tensor<T> rotary_embedding(const Tensor<T>& x, std::size_t num_heads, const RotaryOptions& options) {
  const char* operation = "rotary_embedding";
  const Shape& shape = x.shape();
  require(shape.size() == 3, operation, "expected queries or keys of shape (B, T, H D), got ", x);
  require(num_heads > 0 && shape[2] % num_heads == 0 && shape[2] / num_heads % 2 == 0, operation,
          "expected a last axis of num_heads heads of even width, got ", num_heads, " heads and ", x);
  require(options.base > 0 && std::isfinite(options.base), operation, "expected a finite base above 0, got ",
          options.base);
  // Without elements no angles are computed, whatever the number of rows.
  Array<T> cos_sin = make_cos_sin<T>(x.size() == 0 ? 0 : shape[1], shape[2] / num_heads, options);
  Array<T> y = rotated(x.value(), cos_sin, T(1));
  return record(
      {operation,
       "y = x ⊙ cos θ + x′ ⊙ sin θ, x′ = (−x₂, x₁) for x = (x₁, x₂) in each head, θ = t c^(−2i/D); "
       "dx = dy ⊙ cos θ − dy′ ⊙ sin θ",
       options.base},
      std::move(y), {x},
      [cos_sin = std::move(cos_sin)](const Array<T>& dy, auto& dx) { dx[0] += rotated(dy, cos_sin, T(-1)); },
      [&](auto& arguments) {
        arguments.add("num_heads", num_heads).add("base", options.base).add("first", options.first);
      });
}

#define INSTANTIATE(T)                                                                          \
  template Tensor<T> embedding(const Tensor<T>&, const IntArray&, std::optional<std::int64_t>); \
  template Tensor<T> embedding(const Value<BFloat16>&, const IntArray&, std::string_view);      \
  template Tensor<T> rotary_embedding(const Tensor<T>&, std::size_t, const RotaryOptions&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
