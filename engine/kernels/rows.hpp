/// Softmax of one row of contiguous elements, and its gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "vector_loops.hpp"

namespace tapegrad::detail {

/// y = exp(x) / sum(exp(x)), computed as exp(x - max(x)) against overflow. A row of only -inf gives NaN:
/// exp(-inf - -inf). x and y may be the same row.
template <class T> void row_softmax(const VectorLoops<T>& loops, const T* x, T* y, std::size_t n) {
  loops.scale(y, n, 1 / loops.exp_sum(x, y, n, loops.max(x, n)));
}

/// log(sum(exp(x))) = largest + log(sum), stored in two parts, since adding them loses digits for large x.
template <class T> struct SumExp { T largest, sum; };

template <class T> SumExp<T> row_sum_exp(const VectorLoops<T>& loops, const T* x, std::size_t n) {
  constexpr std::size_t kBlock = 1024;  // blocks are added in double: a float loses digits over many classes
  const T largest = loops.max(x, n);
  double sum = 0;
  for (std::size_t i = 0; i < n; i += kBlock) sum += loops.sum_exp(x + i, std::min(kBlock, n - i), largest);
  return {largest, static_cast<T>(sum)};
}

/// dx = y (dy - sum(dy y)) for y = softmax(x): the product with the Jacobian diag(y) - y y^T. dx and dy may be the
/// same.
template <class T>
void row_softmax_backward(const VectorLoops<T>& loops, const T* y, const T* dy, T* dx, std::size_t n) {
  loops.softmax_backward(y, dy, dx, n, loops.dot(dy, y, n));
}

}  // namespace tapegrad::detail
