/// Tiled attention: without all scores, memory grows linearly with the length (Dao et al. 2022, arXiv:2205.14135).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../array/array.hpp"
#include "gemm.hpp"
#include "rows.hpp"

namespace tapegrad::detail {

/// The memory layout of an operand's heads: each is a (rows, width) matrix with its own leading dimension.
struct HeadLayout {
  std::size_t rows, width;
  std::size_t batch_step, head_step, row_step;  // in elements

  /// (B, H, capacity, width), with the first `rows` of each head in use.
  static HeadLayout of_heads(std::size_t heads, std::size_t capacity, std::size_t rows, std::size_t width) {
    return {rows, width, heads * capacity * width, capacity * width, width};
  }
  /// (B, rows, columns), the heads side by side in the columns.
  static HeadLayout of_columns(std::size_t heads, std::size_t rows, std::size_t columns) {
    return {rows, columns / heads, rows * columns, columns / heads, columns};
  }

  template <class T> Matrix<T> at(T* data, std::size_t b, std::size_t h) const {
    if (rows == 0) return {data, rows, width, row_step};  // avoids an offset out of bounds without elements
    return {data + b * batch_step + h * head_step, rows, width, row_step};
  }
};

/// The layout of operands and result. A group's heads share keys and values (Ainslie et al. 2023, arXiv:2305.13245).
struct AttentionLayout {
  std::size_t batch, heads, heads_of_group;
  HeadLayout q, k, v, out;

  std::size_t groups() const { return heads / heads_of_group; }
  double default_scale() const { return 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(q.width, 1))); }
};

/// The layout of queries (B, T, H D), keys (B, S, G D), values (B, S, G E) and a result (B, T, H E), with heads side by
/// side in the columns; G follows from the widths. Throws std::invalid_argument if the shapes do not fit.
AttentionLayout layout_of_columns(const char* operation, const Shape& q, const Shape& k, const Shape& v,
                                  std::size_t heads);

/// O = softmax(scale Q K^T, masked) V for every head and batch entry, with K and V of the head's group. Drops weights
/// with probability `dropout` after the softmax, the same weights in both passes.
template <class T> struct Attention : AttentionLayout {
  T scale;
  double dropout;
  std::uint64_t dropout_key;
  MaskRows<T> masks;

  /// Writes O, and for the backward pass the `statistics` (B, H, T, 2): each query's largest score m and
  /// l = sum(exp(scores - m)). Fully masked queries get zeros, m = 0 and l = inf.
  void forward(const T* q_data, const T* k_data, const T* v_data, T* out_data, T* statistics) const;

  /// Writes dQ, dK and dV from dO. dK and dV sum over the heads of a group.
  void backward(const T* q_data, const T* k_data, const T* v_data, const T* out_data, const T* statistics,
                const T* dout_data, T* dq_data, T* dk_data, T* dv_data) const;
};

}  // namespace tapegrad::detail
