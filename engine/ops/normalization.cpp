#include <algorithm>
#include <cmath>

#include "../kernels/rows.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::chunks_for, detail::parallel_for, detail::require, detail::sum_run, detail::vector_loops;

// Applies f to rows along any axis: transposes the axis to the last position and back.
template <class T, class F> Tensor<T> along_last(const char* operation, const Tensor<T>& x, std::ptrdiff_t axis, F f) {
  const std::size_t i = detail::normalize_axis_or_scalar(operation, axis, x.dimension());
  if (i + 1 >= x.dimension()) return f(x);
  const auto at = static_cast<std::ptrdiff_t>(i);
  return transpose(f(transpose(x, at, -1)), at, -1);
}

// y of this shape: row(i, out) computes its row i of n elements.
template <class T, class Row> Array<T> by_rows(const Shape& shape, std::size_t n, Row row) {
  Array<T> y(shape);
  parallel_for(n == 0 ? 0 : y.size() / n, chunks_for(y.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) row(i, y.data() + i * n);
  });
  return y;
}

// The length of rows along the last axis. A scalar is one row.
std::size_t row_length(const Shape& shape) { return shape.empty() ? 1 : shape.back(); }

// Describes an operation on rows. Its axis is always the last one, after along_last.
constexpr auto last_axis = [](auto& arguments) { arguments.add("axis", -1); };

template <class T, class Describe>
Tensor<T> record_softmax(const Operation& operation, const Tensor<T>& x, Array<T> value, const Describe& describe) {
  const auto rule = [n = row_length(x.shape())](const Array<T>& dy, auto& dx, const Array<T>& y) {
    dx[0] += by_rows<T>(dy.shape(), n, [&](std::size_t i, T* out) {
      detail::row_softmax_backward(vector_loops<T>(), y.data() + i * n, dy.data() + i * n, out, n);
    });
  };
  return record(operation, std::move(value), {x}, rule, describe);
}

}  // namespace

template <class T> Tensor<T> softmax(const Tensor<T>& x, std::ptrdiff_t axis) {
  return along_last("softmax", x, axis, [](const Tensor<T>& rows) {
    const std::size_t n = row_length(rows.shape());
    Array<T> y = by_rows<T>(rows.shape(), n, [n, a = rows.value().data()](std::size_t i, T* out) {
      detail::row_softmax(vector_loops<T>(), a + i * n, out, n);
    });
    return record_softmax({"softmax", "y = softmax(x); dx = y ⊙ (dy − Σ dy ⊙ y)"}, rows, std::move(y), last_axis);
  });
}

template <class T> Tensor<T> log_softmax(const Tensor<T>& x, std::ptrdiff_t axis) {
  return along_last("log_softmax", x, axis, [](const Tensor<T>& rows) {
    const std::size_t n = row_length(rows.shape());
    Array<T> y = by_rows<T>(rows.shape(), n, [n, x = rows.value().data()](std::size_t i, T* out) {
      const T* a = x + i * n;
      const auto [largest, sum] = detail::row_sum_exp(vector_loops<T>(), a, n);
      const T log_sum = std::log(sum);
      for (std::size_t j = 0; j < n; ++j) out[j] = (a[j] - largest) - log_sum;
    });
    return record(
        {"log_softmax", "y = x − log Σ exp(x); dx = dy − exp(y) Σ dy"}, std::move(y), {rows},
        [n](const Array<T>& dy, auto& dx, const Array<T>& y) {
          dx[0] += by_rows<T>(dy.shape(), n, [&](std::size_t i, T* out) {
            const T* d = dy.data() + i * n;
            const T sum = sum_run(d, n);
            vector_loops<T>().exp(y.data() + i * n, out, n);
            for (std::size_t j = 0; j < n; ++j) out[j] = d[j] - out[j] * sum;
          });
        },
        last_axis);
  });
}

template <class T> Tensor<T> masked_softmax(const Tensor<T>& scores, const AttentionMask& mask) {
  const Shape& s = scores.shape();
  require(s.size() >= 2 && s.size() <= 4, "masked_softmax",
          "expected scores of shape (B, H, T, S), (B, T, S) or (T, S), got ", s);
  const std::size_t queries = s[s.size() - 2], keys = s.back();
  const std::size_t heads = s.size() == 4 ? s[1] : 1, batch = s.size() > 2 ? s[0] : 1;
  const detail::MaskRows<T> masks("masked_softmax", mask, batch, heads, queries, keys);
  Array<T> y = by_rows<T>(s, keys, [&](std::size_t i, T* out) {
    std::copy_n(scores.value().data() + i * keys, keys, out);
    masks.softmax(i / queries / heads, i / queries % heads, i % queries, out);
  });
  return record_softmax({"masked_softmax", "y = softmax(x + mask); dx = y ⊙ (dy − Σ dy ⊙ y)"}, scores, std::move(y),
                        [&](auto& arguments) { masks.describe(arguments); });
}

namespace {

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
  const detail::VectorLoops<T>& loops = vector_loops<T>();

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
  const Normalization<T> rule{centred, n, static_cast<T>(eps)};

  Array<T> h(x.shape()), r(Shape{n == 0 ? 0 : x.size() / n});
  const T* w = weight.defined() ? weight.value().data() : nullptr;
  const T* b = bias.defined() ? bias.value().data() : nullptr;
  Array<T> y = by_rows<T>(x.shape(), n, [&](std::size_t i, T* out) {
    T* const normal = h.data() + i * n;
    r.data()[i] = rule.normalize_row(x.value().data() + i * n, normal);
    rule.scale_row(normal, w, b, out);
  });

  return record(
      {operation, normalization_formula(centred, weight.defined(), bias.defined())}, std::move(y), {x, weight, bias},
      [rule, n, normalized, h = std::move(h), r = std::move(r), weight = weight.shared_value()](const Array<T>& dy,
                                                                                                auto& dx) {
        const auto add = [&](const Gradient<T>& gradient, auto add_row) {
          if (gradient.needs_grad()) gradient += detail::sums_by_blocks<T>(r.size(), normalized, add_row);
        };
        add(dx[1], [&](std::size_t i, T* dw) { rule.loops.add_product(dy.data() + i * n, h.data() + i * n, dw, n); });
        add(dx[2], [&](std::size_t i, T* db) { rule.loops.add(dy.data() + i * n, db, n); });
        if (!dx[0].needs_grad()) return;
        const T* w = weight ? weight->data() : nullptr;
        dx[0] += by_rows<T>(dy.shape(), n, [&](std::size_t i, T* out) {
          rule.backward_row(dy.data() + i * n, w, h.data() + i * n, r.data()[i], out);
        });
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
  template Tensor<T> softmax(const Tensor<T>&, std::ptrdiff_t);                                \
  template Tensor<T> log_softmax(const Tensor<T>&, std::ptrdiff_t);                            \
  template Tensor<T> masked_softmax(const Tensor<T>&, const AttentionMask&);                   \
  template Tensor<T> layer_norm(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&, double); \
  template Tensor<T> rms_norm(const Tensor<T>&, const Tensor<T>&, double);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
