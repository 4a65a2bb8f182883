/// Matrix products on pointers with leading dimensions, without copies for transposes, heads or slices. They use BLAS,
/// except for a few rows on the left: generating one token at a time is bound by memory.
#pragma once

#include <cstddef>
#include <type_traits>

#include "../array/bfloat16.hpp"

namespace tapegrad::detail {

/// A row-major matrix somewhere in memory: row r begins at data + r * stride.
template <class T> struct Matrix {
  T* data;
  std::size_t rows, columns;
  std::size_t stride;       // the leading dimension: elements from one stored row to the next
  bool transposed = false;  // the transpose is stored

  Matrix(T* data_, std::size_t rows_, std::size_t columns_) : Matrix(data_, rows_, columns_, columns_) {}
  Matrix(T* data_, std::size_t rows_, std::size_t columns_, std::size_t stride_, bool transposed_ = false)
      : data(data_), rows(rows_), columns(columns_), stride(stride_), transposed(transposed_) {}

  operator Matrix<const T>() const requires(!std::is_const_v<T>) { return {data, rows, columns, stride, transposed}; }

  Matrix t() const { return {data, columns, rows, stride, !transposed}; }  ///< The transpose of the same elements.

  T* row(std::size_t r) const { return data + r * stride; }  ///< Row r, contiguous. Requires !transposed.

  /// Rows first, ..., last - 1.
  Matrix rows_between(std::size_t first, std::size_t last) const {
    return {data + first * (transposed ? 1 : stride), last - first, columns, stride, transposed};
  }

  /// Columns first, ..., last - 1.
  Matrix columns_between(std::size_t first, std::size_t last) const { return t().rows_between(first, last).t(); }
};

/// c = alpha a b + beta c, not reading c if beta is 0. c is not transposed and overlaps neither a nor b. With one row
/// on the left, threads do not change the result. Throws std::invalid_argument if an extent exceeds BLAS's int.
template <class T> void gemm(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha = 1, T beta = 0);

/// The same on this thread only, for parallel loops.
template <class T> void gemm_on_this_thread(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha = 1, T beta = 0);

/// The same with b in bfloat16, widened in registers for a few rows and a transposed b, else in blocks in the cache.
template <class T> void gemm(Matrix<const T> a, Matrix<const BFloat16> b, Matrix<T> c, T alpha = 1, T beta = 0);

/// c = a b + bias, with the bias (columns) added to every row.
template <class T> void gemm_plus_bias(Matrix<const T> a, Matrix<const T> b, const T* bias, Matrix<T> c);
template <class T> void gemm_plus_bias(Matrix<const T> a, Matrix<const BFloat16> b, const T* bias, Matrix<T> c);

}  // namespace tapegrad::detail
