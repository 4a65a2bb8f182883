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

// part(rows of a, columns of b, rows and columns of c): some rows of c for every thread, or some columns where there
// are more of those.
template <class T, class Part> void for_each_part(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, Part part) {
  assert(a.columns == b.rows && c.rows == a.rows && c.columns == b.columns && !c.transposed);
  if (c.rows == 0 || c.columns == 0) return;
  [[maybe_unused]] static const bool once = blas_on_one_thread();

  constexpr std::size_t kWorthAThread = std::size_t{1} << 20;  // multiplications: some ten microseconds
  constexpr std::size_t kUnit = 16;                            // rows that BLAS's kernels like to have together
  const std::size_t extent = std::max(c.rows, c.columns), units = (extent + kUnit - 1) / kUnit;
  const std::size_t chunks = std::min(threads_here(), c.rows * c.columns * a.columns / kWorthAThread);
  parallel_for(units, chunks, [&](std::size_t begin, std::size_t end) {
    const std::size_t first = begin * kUnit, last = std::min(end * kUnit, extent);
    if (c.rows >= c.columns)
      part(a.rows_between(first, last), b, c.rows_between(first, last), 0);
    else
      part(a, b.t().rows_between(first, last).t(), c.t().rows_between(first, last).t(), first);
  });
}

}  // namespace

template <class T> void gemm(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta) {
  for_each_part(a, b, c, [=](Matrix<const T> a_part, Matrix<const T> b_part, Matrix<T> c_part, std::size_t) {
    gemm_on_this_thread(a_part, b_part, c_part, alpha, beta);
  });
}

template <class T> void gemm_plus_bias(Matrix<const T> a, Matrix<const T> b, const T* bias, Matrix<T> c) {
  for_each_part(a, b, c, [=](Matrix<const T> a_part, Matrix<const T> b_part, Matrix<T> c_part, std::size_t column) {
    for (std::size_t r = 0; r < c_part.rows; ++r) std::copy_n(bias + column, c_part.columns, c_part.row(r));
    gemm_on_this_thread(a_part, b_part, c_part, T(1), T(1));
  });
}

#define INSTANTIATE(T)                                                   \
  template void gemm(Matrix<const T>, Matrix<const T>, Matrix<T>, T, T); \
  template void gemm_plus_bias(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad::detail
