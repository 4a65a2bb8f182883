#include <cmath>

#include "../array/internal/error.hpp"
#include "../array/internal/parallel.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::chunks_for;
using detail::parallel_for;
using detail::require;

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

// y = x with every pair of elements rotated, in all heads of all rows; in reverse if the direction is -1.
// x, y: (B, T, H D), cos_sin: (T, D)
template <class T> void rotate(const Array<T>& x, const Array<T>& cos_sin, T direction, Array<T>& y) {
  if (x.size() == 0) return;
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
  Array<T> y(shape);
  rotate(x.value(), cos_sin, T(1), y);
  return record(
      {operation,
       "y = x ⊙ cos θ + x′ ⊙ sin θ, x′ = (−x₂, x₁) for x = (x₁, x₂) in each head, θ = t c^(−2i/D); "
       "dx = dy ⊙ cos θ − dy′ ⊙ sin θ",
       options.base},
      std::move(y), {x},
      [cos_sin = std::move(cos_sin)](const Array<T>& dy, auto& dx) {
        Array<T> gradient(dy.shape());
        rotate(dy, cos_sin, T(-1), gradient);
        dx[0] += std::move(gradient);
      },
      [&](auto& arguments) {
        arguments.add("num_heads", num_heads).add("base", options.base).add("first", options.first);
      });
}

#define INSTANTIATE(T) template Tensor<T> rotary_embedding(const Tensor<T>&, std::size_t, const RotaryOptions&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
