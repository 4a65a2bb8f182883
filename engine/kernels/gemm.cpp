#include "gemm.hpp"

#include <xtensor-blas/xblas.hpp>

#include <algorithm>
#include <cassert>

namespace tapegrad::detail {

template <class T> void gemm(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta) {
  assert(a.columns == b.rows && c.rows == a.rows && c.columns == b.columns && !c.transposed);
  using Int = CBLAS_INT;
  const auto leading = [](const auto& m) { return static_cast<Int>(std::max<std::size_t>(m.stride, 1)); };
  const auto transpose = [](const auto& m) { return m.transposed ? cxxblas::Trans : cxxblas::NoTrans; };
  if (c.rows == 0 || c.columns == 0) return;
  cxxblas::gemm<Int>(cxxblas::RowMajor, transpose(a), transpose(b), static_cast<Int>(c.rows),
                     static_cast<Int>(c.columns), static_cast<Int>(a.columns), alpha, a.data, leading(a), b.data,
                     leading(b), beta, c.data, leading(c));
}

template void gemm(Matrix<const float>, Matrix<const float>, Matrix<float>, float, float);
template void gemm(Matrix<const double>, Matrix<const double>, Matrix<double>, double, double);

}  // namespace tapegrad::detail
