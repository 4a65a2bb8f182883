/// Loops over contiguous elements that compilers do not vectorize, in xsimd, for several instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../array/bfloat16.hpp"

namespace tapegrad::detail {

/// c = alpha a b + beta c, or alpha a b^T + beta c, for an `a` of few rows; c is not read if beta is 0.
template <class T, class B = T> struct FewRows {
  const T* a;
  const B* b;
  T* c;
  std::size_t a_stride, b_stride, c_stride;
  std::size_t rows, inner, columns;  // of a, of both, of the product
  T alpha, beta;
};

/// A binary operation. Either operand may be a single number.
template <class T> struct BinaryLoops {
  void (*runs)(const T* x, const T* y, T* z, std::size_t n);
  void (*run_number)(const T* x, T y, T* z, std::size_t n);
  void (*number_run)(T x, const T* y, T* z, std::size_t n);
};

/// The loops for one instruction set. Arrays need no alignment; results may overwrite inputs.
template <class T> struct VectorLoops {
  const char* instruction_set;

  BinaryLoops<T> plus, minus, times, divide;                         ///< z = x + y, x - y, x y, x / y
  void (*add_product)(const T* x, const T* y, T* z, std::size_t n);  ///< z += x y

  void add(const T* x, T* y, std::size_t n) const { plus.runs(x, y, y, n); }              ///< y += x
  void scale(T* y, std::size_t n, T factor) const { times.run_number(y, factor, y, n); }  ///< y *= factor

  T (*sum)(const T* x, std::size_t n);
  T (*max)(const T* x, std::size_t n);  ///< NaN if any element is, -inf if n is 0
  T (*dot)(const T* x, const T* y, std::size_t n);

  // Products bound by memory: they read each element of b about once, without packing b first as BLAS does.
  void (*row_by_matrix)(const FewRows<T>& product);                   ///< one row; b is (inner, columns)
  void (*few_rows_by_transpose)(const FewRows<T>& product);           ///< with b^T; b is (columns, inner)
  void (*few_rows_by_bfloat16)(const FewRows<T, BFloat16>& product);  ///< the same with b in bfloat16

  // Softmax and cross-entropy.
  T (*exp_sum)(const T* x, T* y, std::size_t n, T shift);  ///< y = exp(x - shift), unless null; returns the sum.
  void (*exp_scaled)(const T* x, T* y, std::size_t n, T shift, T factor);  ///< y = exp(x - shift) factor
  /// dx = y (dy - dot): the gradient of softmax, with dot = sum(dy y).
  void (*softmax_backward)(const T* y, const T* dy, T* dx, std::size_t n, T dot);

  // LayerNorm.
  void (*scale_and_shift)(const T* h, const T* w, const T* b, T* y, std::size_t n);  ///< y = h w + b
  /// dx = r (g - mean_g - h mean_gh)
  void (*layer_norm_backward)(const T* g, const T* h, T* dx, std::size_t n, T r, T mean_g, T mean_gh);

  /// y = x / (1 - p), but 0 with probability p: element i is dropped by random number first + i of the key.
  void (*dropout)(const T* x, T* y, std::size_t n, double p, std::uint64_t key, std::uint64_t first);

  using Function = void (*)(const T* x, T* y, std::size_t n);
  using Derivative = void (*)(const T* x, const T* dy, T* dx, std::size_t n);
  Function exp, log, tanh, sigmoid, gelu, gelu_tanh, silu;      ///< y = f(x)
  Derivative gelu_backward, gelu_tanh_backward, silu_backward;  ///< dx = dy f'(x)

  /// y = log(1 + exp(beta x)) / beta, and x where beta x is above the threshold.
  void (*softplus)(const T* x, T* y, std::size_t n, T beta, T threshold);
  void (*softplus_backward)(const T* x, const T* dy, T* dx, std::size_t n, T beta, T threshold);
};

template <class T> const VectorLoops<T>& vector_loops();  ///< The loops for the instruction set in use.
/// The loops of every instruction set of this processor, the best last; for tests.
template <class T> std::vector<const VectorLoops<T>*> all_vector_loops();

/// The loops of one instruction set, each defined in a file compiled for it.
struct LoopsOfSet : VectorLoops<float>, VectorLoops<double> {};
extern const LoopsOfSet baseline_loops;  ///< the build's target: SSE2 on x86-64
extern const LoopsOfSet avx2_loops, avx512_loops;

}  // namespace tapegrad::detail
