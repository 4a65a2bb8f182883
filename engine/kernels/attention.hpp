/// Attention tile by tile: the scores of all queries and keys never exist at once, so that memory grows with the
/// length and not with its square (Dao et al. 2022, arXiv:2205.14135).
#pragma once

#include <cstdint>

#include "../array/shape.hpp"
#include "gemm.hpp"
#include "mask_rows.hpp"

namespace tapegrad::detail {

/// How the heads of an operand lie in memory: each is a (rows, width) matrix with a leading dimension of its own.
struct HeadLayout {
  std::size_t rows, width;
  std::size_t batch_step, head_step, row_step;  // in elements

  /// (B, H, capacity, width), of which the first rows of each head count.
  static HeadLayout of_heads(std::size_t heads, std::size_t capacity, std::size_t rows, std::size_t width) {
    return {rows, width, heads * capacity * width, capacity * width, width};
  }
  /// (B, rows, columns), the heads side by side in the columns.
  static HeadLayout of_columns(std::size_t heads, std::size_t rows, std::size_t columns) {
    return {rows, columns / heads, rows * columns, columns / heads, columns};
  }

  template <class T> Matrix<T> at(T* data, std::size_t b, std::size_t h) const {
    if (rows == 0) return {data, rows, width, row_step};  // of no elements: there is nothing to point into
    return {data + b * batch_step + h * head_step, rows, width, row_step};
  }
};

/// Where the heads of the operands and of the result lie, for each of the batch entries. Heads are in groups, of which
/// each shares one head of keys and values (Ainslie et al. 2023, arXiv:2305.13245).
struct AttentionLayout {
  std::size_t batch, heads, heads_of_group;
  HeadLayout q, k, v, out;

  std::size_t groups() const { return heads / heads_of_group; }
};

/// The layout of queries (B, T, H D), keys (B, S, G D), values (B, S, G E) and a result (B, T, H E), whose heads lie
/// side by side in the columns; G follows from the widths. Throws std::invalid_argument for shapes that do not fit.
AttentionLayout layout_of_columns(const char* operation, const Shape& q, const Shape& k, const Shape& v,
                                  std::size_t heads);

/// O = softmax(scale Q K^T under the mask) V for every head of every batch entry, K and V those of its group; weights
/// are dropped with probability `dropout` after the softmax, the same ones forward and backward.
template <class T> struct Attention : AttentionLayout {
  T scale;
  double dropout;
  std::uint64_t dropout_key;
  MaskRows<T> masks;

  /// Writes O, and what the backward pass needs to make the weights again: of every query's scores the largest m and
  /// l = sum(exp(scores - m)), to `statistics`, (B, H, T, 2). Queries that may attend to nothing get zeros, m = 0 and
  /// l = inf.
  void forward(const T* q_data, const T* k_data, const T* v_data, T* out_data, T* statistics) const;

  /// Writes dQ, dK and dV, given dO; those of a group's keys and values are sums over its heads.
  void backward(const T* q_data, const T* k_data, const T* v_data, const T* out_data, const T* statistics,
                const T* dout_data, T* dq_data, T* dk_data, T* dv_data) const;

 private:
  struct Shares;
  struct Part;
  struct Strip;
  struct Tile;
  struct Scratch;
  class PartialSums;
  struct ForwardStrip;
  struct BackwardPart;
  struct BackwardStrip;

  Shares shares() const;
  template <class Body> void for_each_part(const Shares& shares, Body body) const;
  template <class Body> void for_each_strip(const Part& part, const Shares& shares, Body body) const;
  template <class Body> void for_each_tile(const Strip& strip, Body body) const;
  template <class U> static Matrix<U> rows_of(const HeadLayout& layout, U* data, const Strip& strip);
  std::size_t first_statistic(const Strip& strip) const;
  void masked_scores(const Tile& tile, Matrix<const T> Q, Matrix<const T> Kt, T* S, std::size_t* seen) const;
  void drop(const Tile& tile, T* weights) const;
  void forward_strip(const ForwardStrip& strip) const;
  void backward_strip(BackwardStrip strip, BackwardPart& part) const;
  void backward_tile(const Tile& tile, const BackwardStrip& strip, BackwardPart& part) const;
};

}  // namespace tapegrad::detail
