#include "gemm.hpp"

#include <xtensor-blas/xblas.hpp>

#include <algorithm>
#include <cassert>

#include "../parallel.hpp"

// OpenBLAS's own function; null when another BLAS is linked.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace tapegrad::detail {
namespace {

template <class T> void gemm_on_this_thread(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta) {
  using Int = CBLAS_INT;
  const auto leading = [](const auto& m) { return static_cast<Int>(std::max<std::size_t>(m.stride, 1)); };
  const auto transpose = [](const auto& m) { return m.transposed ? cxxblas::Trans : cxxblas::NoTrans; };
  cxxblas::gemm<Int>(cxxblas::RowMajor, transpose(a), transpose(b), static_cast<Int>(c.rows),
                     static_cast<Int>(c.columns), static_cast<Int>(a.columns), alpha, a.data, leading(a), b.data,
                     leading(b), beta, c.data, leading(c));
}

// The products share the pool's threads with our other loops: BLAS's own threads would compete with them.
bool blas_on_one_thread() {
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
  return true;
}

}  // namespace

template <class T> void gemm(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta) {
  assert(a.columns == b.rows && c.rows == a.rows && c.columns == b.columns && !c.transposed);
  if (c.rows == 0 || c.columns == 0) return;
  [[maybe_unused]] static const bool once = blas_on_one_thread();

  // Every thread makes some rows of c, or some columns where there are more of those.
  constexpr std::size_t kWorthAThread = std::size_t{1} << 20;  // multiplications: some ten microseconds
  constexpr std::size_t kUnit = 16;                            // rows that BLAS's kernels like to have together
  const std::size_t extent = std::max(c.rows, c.columns), units = (extent + kUnit - 1) / kUnit;
  const std::size_t chunks = std::min(threads_here(), c.rows * c.columns * a.columns / kWorthAThread);
  parallel_for(units, chunks, [&](std::size_t begin, std::size_t end) {
    const std::size_t first = begin * kUnit, last = std::min(end * kUnit, extent);
    if (c.rows >= c.columns)
      gemm_on_this_thread(a.rows_between(first, last), b, c.rows_between(first, last), alpha, beta);
    else
      gemm_on_this_thread(a, b.t().rows_between(first, last).t(), c.t().rows_between(first, last).t(), alpha, beta);
  });
}

template void gemm(Matrix<const float>, Matrix<const float>, Matrix<float>, float, float);
template void gemm(Matrix<const double>, Matrix<const double>, Matrix<double>, double, double);

}  // namespace tapegrad::detail
