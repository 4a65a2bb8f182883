#include <algorithm>
#include <cmath>

#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::chunks_for, detail::parallel_for, detail::require, detail::sum_run;

// r and h as in Normalization.
constexpr const char* normalization_formula(bool centred, bool weight, bool bias) {
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

// Divides rows of n elements by their root mean square. LayerNorm first subtracts their mean.
template <class T> struct Normalization {
  bool centred;
  std::size_t n;
  T eps;
  const detail::VectorLoops<T>& loops = detail::vector_loops<T>();

  T mean(const T* x) const { return sum_run(x, n) / static_cast<T>(n); }

  // h = r (x - mean(x)); returns r.
  T normalize_row(const T* x, T* h) const {
    if (centred) {
      loops.minus.run_number(x, mean(x), h, n);
      // The mean of large numbers is rounded. Subtracting the remaining mean corrects rows of nearly equal ones.
      loops.minus.run_number(h, mean(h), h, n);
    }
    const T* const rest = centred ? h : x;
    const T squares = loops.dot(rest, rest, n) / static_cast<T>(n);
    const T r = 1 / std::sqrt(squares + eps);
    loops.times.run_number(rest, r, h, n);
    return r;
  }

  // y = h w + b; a null w is 1, a null b is 0.
  void scale_row(const T* h, const T* w, const T* b, T* y) const {
    if (w && b)
      loops.scale_and_shift(h, w, b, y, n);
    else
      for (std::size_t i = 0; i < n; ++i) y[i] = h[i] * (w ? w[i] : 1) + (b ? b[i] : 0);
  }

  // dx = r (g - mean(g) - h mean(g h)), g = dy w
  void backward_row(const T* dy, const T* w, const T* h, T r, T* dx) const {
    T* const g = dx;
    w ? loops.times.runs(dy, w, g, n) : loops.times.run_number(dy, T(1), g, n);
    const T mean_g = centred ? mean(g) : 0;
    const T mean_gh = loops.dot(g, h, n) / static_cast<T>(n);
    loops.layer_norm_backward(g, h, dx, n, r, mean_g, mean_gh);
  }

  // dw += sum over the rows of dy h, parallel over columns. Many rows are summed in blocks.
  void add_weight_gradient(const Array<T>& dy, const Array<T>& h, T* dw) const {
    const std::size_t max_chunks = (n + 127) / 128;
    parallel_for(n, std::min(chunks_for(dy.size()), max_chunks), [&](std::size_t begin, std::size_t end) {
      Array<T> partial(Shape{end - begin});
      const std::size_t block = detail::kMaxSumLength * n;
      for (std::size_t first = begin; first < dy.size(); first += block) {
        partial.fill(T(0));
        for (std::size_t i = first; i < std::min(first + block, dy.size()); i += n)
          loops.add_product(dy.data() + i, h.data() + i, partial.data(), end - begin);
        loops.add(partial.data(), dw + begin, end - begin);
      }
    });
  }
};

// Checks the shapes. Returns the shape of a row, of the weight and of the bias.
template <class T>
Shape normalized_shape(const char* operation, const Shape& shape, const Tensor<T>& weight, const Tensor<T>& bias) {
  require(shape.size() >= 1, operation, "expected at least one axis, got shape ()");
  const Shape normalized = weight.defined() ? weight.shape() : bias.defined() ? bias.shape() : Shape{shape.back()};
  require(normalized.size() >= 1 && normalized.size() <= shape.size() &&
              std::equal(normalized.rbegin(), normalized.rend(), shape.rbegin()),
          operation, "expected a weight with the shape of the input's last axes, got input ", shape, " and weight ",
          weight.defined() ? weight : bias);
  require(!bias.defined() || bias.shape() == normalized, operation, "expected weight and bias of equal shape, got ",
          normalized, " and ", bias);
  return normalized;
}

template <class T>
Tensor<T> normalize(const char* operation, bool centred, const Tensor<T>& x, const Tensor<T>& weight,
                    const Tensor<T>& bias, double eps) {
  const Shape normalized = normalized_shape(operation, x.shape(), weight, bias);
  const std::size_t n = element_count(normalized);
  require(eps >= 0, operation, "expected eps of at least 0, got ", eps);
  const std::size_t rows = n == 0 ? 0 : x.size() / n;
  const Normalization<T> rule{centred, n, static_cast<T>(eps)};

  Array<T> y(x.shape()), h(x.shape()), r(Shape{rows});
  const T* w = weight.defined() ? weight.value().data() : nullptr;
  const T* b = bias.defined() ? bias.value().data() : nullptr;
  parallel_for(rows, chunks_for(x.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      T* const normal = h.data() + row * n;
      r.data()[row] = rule.normalize_row(x.value().data() + row * n, normal);
      rule.scale_row(normal, w, b, y.data() + row * n);
    }
  });

  return record(
      {operation, normalization_formula(centred, weight.defined(), bias.defined())}, std::move(y), {x, weight, bias},
      [rule, rows, h = std::move(h), r = std::move(r), weight = weight.shared_value()](const Array<T>& dy, auto& dx) {
        if (dx[1].needs_grad()) rule.add_weight_gradient(dy, h, detail::zeroed_destination(dx[1]));
        dx[2] += dy;
        if (!dx[0].needs_grad()) return;
        const T* w = weight ? weight->data() : nullptr;
        Array<T> gradient(dy.shape());
        parallel_for(rows, chunks_for(dy.size()), [&](std::size_t begin, std::size_t end) {
          for (std::size_t row = begin; row < end; ++row) {
            const std::size_t first = row * rule.n;
            rule.backward_row(dy.data() + first, w, h.data() + first, r.data()[row], gradient.data() + first);
          }
        });
        dx[0] += std::move(gradient);
      },
      [&](auto& arguments) { arguments.add("normalized_shape", normalized).add("eps", eps); });
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
