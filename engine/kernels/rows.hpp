/// Softmax of one row of neighbouring elements, and its gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace tapegrad::detail {

/// The largest of a row; -inf for an empty one.
template <class T> T row_max(const T* x, std::size_t n) {
  T largest = -std::numeric_limits<T>::infinity();
  for (std::size_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

/// y = exp(x - shift); returns the sum. x and y may be the same row.
template <class T> T row_exp(const T* x, T* y, std::size_t n, T shift) {
  T sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - shift);
  return sum;
}

/// y = exp(x) / sum(exp(x)), with the largest element subtracted before exp so that it cannot overflow. A row of -inf
/// alone gives NaN: exp(-inf - -inf).
template <class T> void row_softmax(const T* x, T* y, std::size_t n) {
  const T scale = 1 / row_exp(x, y, n, row_max(x, n));
  for (std::size_t i = 0; i < n; ++i) y[i] *= scale;
}

/// log(sum(exp(x)))
template <class T> T row_log_sum_exp(const T* x, std::size_t n) {
  const T largest = row_max(x, n);
  T sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

/// dx = y (dy - sum(dy y)) for y = softmax(x): the product with the Jacobian diag(y) - y y^T. dx and dy may be the
/// same.
template <class T> void row_softmax_backward(const T* y, const T* dy, T* dx, std::size_t n) {
  T dot = 0;
  for (std::size_t i = 0; i < n; ++i) dot += dy[i] * y[i];
  for (std::size_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - dot);
}

}  // namespace tapegrad::detail
