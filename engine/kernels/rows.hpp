/// Softmax of one row of contiguous elements, its gradient, and the masks of rows of attention scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "../array/mask.hpp"
#include "strided.hpp"
#include "vector_loops.hpp"

namespace tapegrad::detail {

/// The sum of part(first, count) over blocks of a row, in double: a float loses digits over many classes.
template <class T, class Part> T sum_of_blocks(std::size_t n, Part part) {
  double sum = 0;
  for (std::size_t i = 0; i < n; i += kMaxSumLength) sum += part(i, std::min(kMaxSumLength, n - i));
  return static_cast<T>(sum);
}

/// y = exp(x) / sum(exp(x)), from exp(x - max(x)) against overflow. NaN for a row of -inf. x and y may be the same.
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
  return {largest, sum_of_blocks<T>(n, [&](std::size_t i, std::size_t count) {
            return loops.exp_sum(x + i, nullptr, count, largest);
          })};
}

/// dx = y (dy - sum(dy y)) for y = softmax(x): its Jacobian is diag(y) - y y^T. dx and dy may be the same row.
template <class T>
void row_softmax_backward(const VectorLoops<T>& loops, const T* y, const T* dy, T* dx, std::size_t n) {
  const T dot = sum_of_blocks<T>(n, [&](std::size_t i, std::size_t count) { return loops.dot(dy + i, y + i, count); });
  loops.softmax_backward(y, dy, dx, n, dot);
}

/// An AttentionMask prepared for scores of one shape.
template <class T> class MaskRows {
 public:
  /// Throws std::invalid_argument naming `operation` if the mask does not fit scores of shape (B, H, T, S).
  MaskRows(const char* operation, AttentionMask mask, std::size_t batch, std::size_t heads, std::size_t queries,
           std::size_t keys);

  /// The max number of visible keys of query t: later ones are in its future or beyond its valid length.
  std::size_t visible(std::size_t b, std::size_t h, std::size_t t) const;

  /// Masks query t's scores of the keys first, ..., first + count - 1: adds the bias and sets masked scores to -inf.
  /// Returns the number of scores to use, rounded up to whole vectors; later ones are masked, too, but not written.
  std::size_t apply(std::size_t b, std::size_t h, std::size_t t, std::size_t first, std::size_t count, T* scores) const;

  /// Turns query t's scores of all keys into weights, with zeros for masked keys and throughout fully masked rows.
  void softmax(std::size_t b, std::size_t h, std::size_t t, T* scores) const;

  /// Adds the mask's parts to an operation's arguments.
  template <class A> void describe(A& arguments) const {
    if (mask_.causal_) arguments.add("causal", true);
    arguments.add("valid_lens", mask_.lengths_).add("allowed", mask_.allowed_).add("bias", mask_.bias_);
  }

 private:
  AttentionMask mask_;
  std::size_t queries_, keys_;
  Strides lengths_, allowed_, bias_;  // of the mask's arrays, broadcast to (B, H, T, S)
};

}  // namespace tapegrad::detail
