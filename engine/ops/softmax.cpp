#include <algorithm>
#include <cmath>
#include <limits>

#include "../array/internal/error.hpp"
#include "../kernels/rows.hpp"
#include "../kernels/strided.hpp"
#include "../kernels/vector_loops.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::vector_loops;

// Applies f to rows along any axis: transposes the axis to the last position and back.
template <class T, class F> Tensor<T> along_last(const char* operation, const Tensor<T>& x, std::ptrdiff_t axis, F f) {
  const std::size_t i = detail::normalize_axis_or_scalar(operation, axis, x.dimension());
  if (i + 1 >= x.dimension()) return f(x);
  const auto at = static_cast<std::ptrdiff_t>(i);
  return transpose(f(transpose(x, at, -1)), at, -1);
}

// row(x, y, i, n) computes row i of y from row i of x, both of n elements. A scalar is one row.
template <class T, class Row> Array<T> by_rows(const Array<T>& x, Row row) {
  Array<T> y(x.shape());
  const std::size_t n = x.dimension() == 0 ? 1 : x.shape().back(), rows = n == 0 ? 0 : x.size() / n;
  detail::parallel_for(rows, detail::chunks_for(x.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) row(x.data() + i * n, y.data() + i * n, i, n);
  });
  return y;
}

// Describes an operation on rows. Its axis is always the last one, after along_last.
constexpr auto last_axis = [](auto& arguments) { arguments.add("axis", -1); };

template <class T, class Describe>
Tensor<T> record_softmax(const Operation& operation, const Tensor<T>& x, Array<T> value, const Describe& describe) {
  const auto rule = [](const Array<T>& dy, auto& dx, const Array<T>& y) {
    dx[0] += by_rows(dy, [&](const T* d, T* out, std::size_t i, std::size_t n) {
      detail::row_softmax_backward(vector_loops<T>(), y.data() + i * n, d, out, n);
    });
  };
  return record(operation, std::move(value), {x}, rule, describe);
}

}  // namespace

template <class T> Tensor<T> softmax(const Tensor<T>& x, std::ptrdiff_t axis) {
  return along_last("softmax", x, axis, [](const Tensor<T>& rows) {
    return record_softmax({"softmax", "y = softmax(x); dx = y ⊙ (dy − Σ dy ⊙ y)"}, rows,
                          by_rows(rows.value(), [](const T* a, T* y, std::size_t,
                                                   std::size_t n) { detail::row_softmax(vector_loops<T>(), a, y, n); }),
                          last_axis);
  });
}

template <class T> Tensor<T> log_softmax(const Tensor<T>& x, std::ptrdiff_t axis) {
  return along_last("log_softmax", x, axis, [](const Tensor<T>& rows) {
    Array<T> y = by_rows(rows.value(), [](const T* a, T* out, std::size_t, std::size_t n) {
      const auto [largest, sum] = detail::row_sum_exp(vector_loops<T>(), a, n);
      const T log_sum = std::log(sum);
      for (std::size_t j = 0; j < n; ++j) out[j] = (a[j] - largest) - log_sum;
    });
    return record(
        {"log_softmax", "y = x − log Σ exp(x); dx = dy − exp(y) Σ dy"}, std::move(y), {rows},
        [](const Array<T>& dy, auto& dx, const Array<T>& y) {
          dx[0] += by_rows(dy, [&](const T* d, T* out, std::size_t i, std::size_t n) {
            const T sum = detail::sum_run(d, n);
            const T* log_p = y.data() + i * n;
            vector_loops<T>().exp(log_p, out, n);
            for (std::size_t j = 0; j < n; ++j) out[j] = d[j] - out[j] * sum;
          });
        },
        last_axis);
  });
}

template <class T> Tensor<T> masked_softmax(const Tensor<T>& scores, const AttentionMask& mask) {
  const Shape& s = scores.shape();
  detail::require(s.size() >= 2 && s.size() <= 4, "masked_softmax",
                  "expected scores of shape (B, H, T, S), (B, T, S) or (T, S), got ", s);
  const std::size_t queries = s[s.size() - 2], keys = s.back();
  const std::size_t heads = s.size() == 4 ? s[1] : 1, batch = s.size() > 2 ? s[0] : 1;
  const detail::MaskRows<T> masks("masked_softmax", mask, batch, heads, queries, keys);
  Array<T> y = by_rows(scores.value(), [&](const T* x, T* out, std::size_t i, std::size_t n) {
    std::copy_n(x, n, out);
    masks.softmax(i / queries / heads, i / queries % heads, i % queries, out);
  });
  return record_softmax({"masked_softmax", "y = softmax(x + mask); dx = y ⊙ (dy − Σ dy ⊙ y)"}, scores, std::move(y),
                        [&](auto& arguments) { masks.describe(arguments); });
}

#define INSTANTIATE(T)                                              \
  template Tensor<T> softmax(const Tensor<T>&, std::ptrdiff_t);     \
  template Tensor<T> log_softmax(const Tensor<T>&, std::ptrdiff_t); \
  template Tensor<T> masked_softmax(const Tensor<T>&, const AttentionMask&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
