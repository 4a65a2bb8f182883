/// Matrix products, on pointers with leading dimensions: no copies for transposes, heads or slices. Through BLAS but
/// for those with a row or a few on the left, as a model has that makes one token at a time: they are bound by memory.
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
  bool transposed = false;  // what is stored is the transpose

  Matrix(T* data_, std::size_t rows_, std::size_t columns_) : Matrix(data_, rows_, columns_, columns_) {}
  Matrix(T* data_, std::size_t rows_, std::size_t columns_, std::size_t stride_, bool transposed_ = false)
      : data(data_), rows(rows_), columns(columns_), stride(stride_), transposed(transposed_) {}

  operator Matrix<const T>() const requires(!std::is_const_v<T>) { return {data, rows, columns, stride, transposed}; }

  /// The transpose of the same elements.
  Matrix t() const { return {data, columns, rows, stride, !transposed}; }

  /// The elements of row r where they are contiguous: not of a transpose.
  T* row(std::size_t r) const { return data + r * stride; }

  /// Rows first, ..., last - 1.
  Matrix rows_between(std::size_t first, std::size_t last) const {
    return {data + first * (transposed ? 1 : stride), last - first, columns, stride, transposed};
  }
};

/// c = alpha a b + beta c; c is not read when beta is 0. c is not transposed and overlaps neither a nor b. Large
/// products are parallel, on the threads of parallel.hpp. Of one row on the left, which matters most where a model
/// makes one token at a time, the result does not depend on the number of threads. Throws std::invalid_argument where
/// BLAS, which counts in int, would be given larger extents.
template <class T> void gemm(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha = 1, T beta = 0);

/// The same on this thread alone, for loops that are parallel themselves.
template <class T> void gemm_on_this_thread(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha = 1, T beta = 0);

/// The same with b in bfloat16, widened on the way: of a few rows, with b transposed, in registers, so that half as
/// much is read from memory; otherwise some columns at a time, into memory that stays in the cache.
template <class T> void gemm(Matrix<const T> a, Matrix<const BFloat16> b, Matrix<T> c, T alpha = 1, T beta = 0);

/// c = a b, with the bias, of c.columns elements, added to every row.
template <class T> void gemm_plus_bias(Matrix<const T> a, Matrix<const T> b, const T* bias, Matrix<T> c);
template <class T> void gemm_plus_bias(Matrix<const T> a, Matrix<const BFloat16> b, const T* bias, Matrix<T> c);

}  // namespace tapegrad::detail
