#include "gemm.hpp"

#include <xtensor-blas/xblas.hpp>

#include <algorithm>
#include <cassert>

#include "../array/array.hpp"
#include "../array/internal/parallel.hpp"
#include "vector_loops.hpp"

// OpenBLAS's own function; null when another BLAS is linked.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace tapegrad::detail {
namespace {

template <class T> void gemm_on_this_thread(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta) {
  using Int = CBLAS_INT;
  const ExitGuard guard;
  const auto leading = [](const auto& m) { return static_cast<Int>(std::max<std::size_t>(m.stride, 1)); };
  const auto transpose = [](const auto& m) { return m.transposed ? cxxblas::Trans : cxxblas::NoTrans; };
  cxxblas::gemm<Int>(cxxblas::RowMajor, transpose(a), transpose(b), static_cast<Int>(c.rows),
                     static_cast<Int>(c.columns), static_cast<Int>(a.columns), alpha, a.data, leading(a), b.data,
                     leading(b), beta, c.data, leading(c));
}

// The products share the pool's threads with our other loops: BLAS's own threads would oversubscribe the processors.
bool blas_on_one_thread() {
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
  return true;
}

// How many threads share a product.
template <class T> std::size_t threads_for(Matrix<const T> a, Matrix<T> c) {
  [[maybe_unused]] static const bool once = blas_on_one_thread();
  constexpr std::size_t kWorthAThread = std::size_t{1} << 18;  // multiply-adds: some five microseconds
  const std::size_t most = std::min(threads_here(), kMostChunks);
  return std::clamp<std::size_t>(c.rows * c.columns * a.columns / kWorthAThread, 1, most);
}

// part(rows of a, columns of b, rows and columns of c, the first of these columns): some rows of c for every thread, or
// some columns where there are more of those.
template <class T, class Part> void for_each_part(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, Part part) {
  constexpr std::size_t kUnit = 16;  // rows: a multiple of the BLAS kernels' register tiles
  const std::size_t extent = std::max(c.rows, c.columns), units = (extent + kUnit - 1) / kUnit;
  parallel_for(units, threads_for(a, c), [&](std::size_t begin, std::size_t end) {
    const std::size_t first = begin * kUnit, last = std::min(end * kUnit, extent);
    if (c.rows >= c.columns)
      part(a.rows_between(first, last), b, c.rows_between(first, last), 0);
    else
      part(a, b.t().rows_between(first, last).t(), c.t().rows_between(first, last).t(), first);
  });
}

// Split-K: every thread accumulates a part of the inner extent, the first in c, the others in partial products of their
// own, which a reduction then adds to c.
template <class T>
void gemm_split_k(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta, std::size_t parts) {
  const std::size_t size = c.rows * c.columns;
  Array<T> others(Shape{parts - 1, size});
  parallel_for(a.columns, parts, [&](std::size_t begin, std::size_t end, std::size_t part) {
    const Matrix<const T> a_part = a.t().rows_between(begin, end).t(), b_part = b.rows_between(begin, end);
    if (part == 0)
      gemm_on_this_thread(a_part, b_part, c, alpha, beta);
    else
      gemm_on_this_thread(a_part, b_part, {others.data() + (part - 1) * size, c.rows, c.columns}, alpha, T(0));
  });
  parallel_for(c.rows, chunks_for(others.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r)
      for (std::size_t at = r * c.columns; at < others.size(); at += size)
        vector_loops<T>().add(others.data() + at, c.row(r), c.columns);
  });
}

bool fits(const auto& a, const auto& b, const auto& c) {
  return a.columns == b.rows && c.rows == a.rows && c.columns == b.columns && !c.transposed;
}

}  // namespace

template <class T> void gemm(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta) {
  assert(fits(a, b, c));
  if (c.rows == 0 || c.columns == 0) return;
  // Parallel over what is longest: split-K where that is the inner extent, as in the gradient of a weight.
  const std::size_t threads = threads_for(a, c);
  if (threads > 1 && a.columns > std::max(c.rows, c.columns)) return gemm_split_k(a, b, c, alpha, beta, threads);
  for_each_part(a, b, c, [=](Matrix<const T> a_part, Matrix<const T> b_part, Matrix<T> c_part, std::size_t) {
    gemm_on_this_thread(a_part, b_part, c_part, alpha, beta);
  });
}

template <class T> void gemm_plus_bias(Matrix<const T> a, Matrix<const T> b, const T* bias, Matrix<T> c) {
  assert(fits(a, b, c));
  if (c.rows == 0 || c.columns == 0) return;
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
