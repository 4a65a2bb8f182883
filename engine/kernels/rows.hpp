/// Softmax of one row of contiguous elements, and its gradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "strided.hpp"
#include "vector_loops.hpp"

namespace tapegrad::detail {

/// The sum of part(first, count) over blocks of a row. Blocks are added in double: a float loses digits over many
/// classes.
template <class T, class Part> T sum_of_blocks(std::size_t n, Part part) {
  double sum = 0;
  for (std::size_t i = 0; i < n; i += kMaxSumLength) sum += part(i, std::min(kMaxSumLength, n - i));
  return static_cast<T>(sum);
}

/// y = exp(x) / sum(exp(x)), computed as exp(x - max(x)) against overflow. A row of only -inf gives NaN:
/// exp(-inf - -inf). x and y may be the same row.
template <class T> void row_softmax(const VectorLoops<T>& loops, const T* x, T* y, std::size_t n) {
  const T largest = loops.max(x, n);
  const T sum = sum_of_blocks<T>(
      n, [&](std::size_t i, std::size_t count) { return loops.exp_sum(x + i, y + i, count, largest); });
  loops.scale(y, n, 1 / sum);
}

/// log(sum(exp(x))) = largest + log(sum), stored in two parts, since adding them loses digits for large x.
template <class T> struct SumExp { T largest, sum; };

template <class T> SumExp<T> row_sum_exp(const VectorLoops<T>& loops, const T* x, std::size_t n) {
  const T largest = loops.max(x, n);
  return {largest,
          sum_of_blocks<T>(n, [&](std::size_t i, std::size_t count) { return loops.sum_exp(x + i, count, largest); })};
}

/// dx = y (dy - sum(dy y)) for y = softmax(x): the product with the Jacobian diag(y) - y y^T. dx and dy may be the
/// same.
template <class T>
void row_softmax_backward(const VectorLoops<T>& loops, const T* y, const T* dy, T* dx, std::size_t n) {
  const T dot = sum_of_blocks<T>(n, [&](std::size_t i, std::size_t count) { return loops.dot(dy + i, y + i, count); });
  loops.softmax_backward(y, dy, dx, n, dot);
}

}  // namespace tapegrad::detail
