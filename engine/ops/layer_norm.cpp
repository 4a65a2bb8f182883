#include <algorithm>
#include <cmath>

#include "../array/internal/error.hpp"
#include "../array/internal/parallel.hpp"
#include "../kernels/strided.hpp"
#include "../kernels/vector_loops.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {

using detail::chunks_for;
using detail::parallel_for;
using detail::require;
using detail::sum_run;

namespace {

// With r and h as the code below calls them.
constexpr const char* formula_of(bool centred, bool weight, bool bias) {
  if (!centred)
    return weight ? "y = h ⊙ w, h = r x, r = 1 / √(mean(x²) + ε); "
                    "dx = r (g − h mean(g ⊙ h)), g = dy ⊙ w; dw = Σ dy ⊙ h"
                  : "y = r x, r = 1 / √(mean(x²) + ε); dx = r (dy − y mean(dy ⊙ y))";
  return weight && bias ? "y = h ⊙ w + b, h = r (x − mean(x)), r = 1 / √(var(x) + ε); "
                          "dx = r (g − mean(g) − h mean(g ⊙ h)), g = dy ⊙ w; dw = Σ dy ⊙ h; db = Σ dy"
         : weight       ? "y = h ⊙ w, h = r (x − mean(x)), r = 1 / √(var(x) + ε); "
                          "dx = r (g − mean(g) − h mean(g ⊙ h)), g = dy ⊙ w; dw = Σ dy ⊙ h"
         : bias         ? "y = h + b, h = r (x − mean(x)), r = 1 / √(var(x) + ε); "
                          "dx = r (dy − mean(dy) − h mean(dy ⊙ h)); db = Σ dy"
                : "y = r (x − mean(x)), r = 1 / √(var(x) + ε); dx = r (dy − mean(dy) − y mean(dy ⊙ y))";
}

// normal = x - mean(x)
template <class T> void centre(const detail::VectorLoops<T>& loops, const T* x, T* normal, std::size_t n) {
  loops.minus.run_number(x, sum_run(x, n) / static_cast<T>(n), normal, n);
  // The mean of large numbers is rounded: what is left of it shows where they hardly differ.
  loops.minus.run_number(normal, sum_run(normal, n) / static_cast<T>(n), normal, n);
}

// Rows divided by the root of the mean of their squares: of LayerNorm, after their mean has been subtracted from them.
template <class T>
Tensor<T> normalize(const char* operation, bool centred, const Tensor<T>& x, const Tensor<T>& weight,
                    const Tensor<T>& bias, double eps) {
  const Shape& shape = x.shape();
  require(shape.size() >= 1, operation, "expected at least one axis, given shape ()");
  const Shape normalized = weight.defined() ? weight.shape() : bias.defined() ? bias.shape() : Shape{shape.back()};
  require(normalized.size() >= 1 && normalized.size() <= shape.size() &&
              std::equal(normalized.rbegin(), normalized.rend(), shape.rbegin()),
          operation, "expected a weight of the shape of the input's last axes, given input ", shape, " and weight ",
          weight.defined() ? weight : bias);
  require(!bias.defined() || bias.shape() == normalized, operation, "expected weight and bias of one shape, given ",
          normalized, " and ", bias);
  require(eps >= 0, operation, "expected eps of at least 0, given ", eps);
  const std::size_t n = element_count(normalized), rows = n == 0 ? 0 : x.size() / n;

  Array<T> y(shape), h(shape), r(Shape{rows});
  const auto& loops = detail::vector_loops<T>();
  const T* w = weight.defined() ? weight.value().data() : nullptr;
  const T* b = bias.defined() ? bias.value().data() : nullptr;
  parallel_for(rows, chunks_for(x.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const T* from = x.value().data() + row * n;
      T *out = y.data() + row * n, *normal = h.data() + row * n;
      if (centred) centre(loops, from, normal, n);
      const T* const rest = centred ? normal : from;
      const T squares = loops.dot(rest, rest, n) / static_cast<T>(n);
      const T scale = r.data()[row] = 1 / std::sqrt(squares + static_cast<T>(eps));
      loops.times.run_number(rest, scale, normal, n);
      if (w && b)
        loops.scale_and_shift(normal, w, b, out, n);
      else
        for (std::size_t i = 0; i < n; ++i) out[i] = normal[i] * (w ? w[i] : 1) + (b ? b[i] : 0);
    }
  });

  return record({operation, formula_of(centred, weight.defined(), bias.defined())}, std::move(y), {x, weight, bias},
                [h = Value<T>(make_value<T>(std::move(h))), r = Value<T>(make_value<T>(std::move(r))),
                 weight = weight.shared_value(), centred, n, rows, &loops](const Array<T>& dy, auto& dx) {
                  if (dx[1].needs_grad()) {
                    T* dw = dx[1].accumulator().data();
                    // A reduction over rows, parallel over columns.
                    parallel_for(n, std::min(chunks_for(dy.size()), (n + 127) / 128),
                                 [&](std::size_t begin, std::size_t end) {
                                   for (std::size_t i = begin; i < rows * n; i += n)
                                     loops.add_product(dy.data() + i, h->data() + i, dw + begin, end - begin);
                                 });
                  }
                  dx[2] += dy;
                  if (!dx[0].needs_grad()) return;
                  const T* w = weight ? weight->data() : nullptr;
                  Array<T> gradient(dy.shape());
                  parallel_for(rows, chunks_for(dy.size()), [&](std::size_t begin, std::size_t end) {
                    for (std::size_t row = begin; row < end; ++row) {
                      const T *d = dy.data() + row * n, *normal = h->data() + row * n;
                      T* g = gradient.data() + row * n;
                      w ? loops.times.runs(d, w, g, n) : loops.times.run_number(d, T(1), g, n);
                      const T mean_g = centred ? sum_run(g, n) / static_cast<T>(n) : 0;
                      const T mean_gh = loops.dot(g, normal, n) / static_cast<T>(n);
                      loops.layer_norm_backward(g, normal, g, n, r->data()[row], mean_g, mean_gh);
                    }
                  });
                  dx[0] += std::move(gradient);
                });
}

}  // namespace

template <class T>
Tensor<T> layer_norm(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias, double eps) {
  return normalize("layer_norm", true, x, weight, bias, eps);
}

template <class T> Tensor<T> rms_norm(const Tensor<T>& x, const Tensor<T>& weight, double eps) {
  return normalize("rms_norm", false, x, weight, Tensor<T>(), eps);
}

#define INSTANTIATE(T)                                                                         \
  template Tensor<T> layer_norm(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, double); \
  template Tensor<T> rms_norm(const Tensor<T>&, const Tensor<T>&, double);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
