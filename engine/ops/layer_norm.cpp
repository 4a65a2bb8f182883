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
constexpr const char* formula_of(bool weight, bool bias) {
  return weight && bias ? "y = h ⊙ w + b, h = r (x − mean(x)), r = 1 / √(var(x) + ε); "
                          "dx = r (g − mean(g) − h mean(g ⊙ h)), g = dy ⊙ w; dw = Σ dy ⊙ h; db = Σ dy"
         : weight       ? "y = h ⊙ w, h = r (x − mean(x)), r = 1 / √(var(x) + ε); "
                          "dx = r (g − mean(g) − h mean(g ⊙ h)), g = dy ⊙ w; dw = Σ dy ⊙ h"
         : bias         ? "y = h + b, h = r (x − mean(x)), r = 1 / √(var(x) + ε); "
                          "dx = r (dy − mean(dy) − h mean(dy ⊙ h)); db = Σ dy"
                : "y = r (x − mean(x)), r = 1 / √(var(x) + ε); dx = r (dy − mean(dy) − y mean(dy ⊙ y))";
}

}  // namespace

template <class T>
Tensor<T> layer_norm(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias, double eps) {
  const Shape& shape = x.shape();
  require(shape.size() >= 1, "layer_norm", "expected at least one axis, given shape ()");
  const Shape normalized = weight.defined() ? weight.shape() : bias.defined() ? bias.shape() : Shape{shape.back()};
  require(normalized.size() >= 1 && normalized.size() <= shape.size() &&
              std::equal(normalized.rbegin(), normalized.rend(), shape.rbegin()),
          "layer_norm", "expected a weight of the shape of the input's last axes, given input ", shape, " and weight ",
          weight.defined() ? weight : bias);
  require(!bias.defined() || bias.shape() == normalized, "layer_norm", "expected weight and bias of one shape, given ",
          normalized, " and ", bias);
  require(eps >= 0, "layer_norm", "expected eps of at least 0, given ", eps);
  const std::size_t n = element_count(normalized), rows = n == 0 ? 0 : x.size() / n;

  Array<T> y(shape), h(shape), r(Shape{rows});
  const auto& loops = detail::vector_loops<T>();
  const T* w = weight.defined() ? weight.value().data() : nullptr;
  const T* b = bias.defined() ? bias.value().data() : nullptr;
  parallel_for(rows, chunks_for(x.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const T* from = x.value().data() + row * n;
      T *out = y.data() + row * n, *normal = h.data() + row * n;
      const T m = sum_run(from, n) / static_cast<T>(n);
      loops.minus.run_number(from, m, normal, n);
      // The mean of large numbers is rounded: what is left of it shows where they hardly differ.
      const T rest = sum_run(normal, n) / static_cast<T>(n);
      loops.minus.run_number(normal, rest, normal, n);
      const T variance = loops.dot(normal, normal, n) / static_cast<T>(n);
      const T scale = r.data()[row] = 1 / std::sqrt(variance + static_cast<T>(eps));
      loops.scale(normal, n, scale);
      if (w && b)
        loops.scale_and_shift(normal, w, b, out, n);
      else
        for (std::size_t i = 0; i < n; ++i) out[i] = normal[i] * (w ? w[i] : 1) + (b ? b[i] : 0);
    }
  });

  return record({"layer_norm", formula_of(weight.defined(), bias.defined())}, std::move(y), {x, weight, bias},
                [h = Value<T>(make_value<T>(std::move(h))), r = Value<T>(make_value<T>(std::move(r))),
                 weight = weight.shared_value(), n, rows, &loops](const Array<T>& dy, auto& dx) {
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
                      const T mean_g = sum_run(g, n) / static_cast<T>(n);
                      const T mean_gh = loops.dot(g, normal, n) / static_cast<T>(n);
                      loops.layer_norm_backward(g, normal, g, n, r->data()[row], mean_g, mean_gh);
                    }
                  });
                  dx[0] += std::move(gradient);
                });
}

#define INSTANTIATE(T) template Tensor<T> layer_norm(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, double);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
