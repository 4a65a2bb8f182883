#include "gemm.hpp"

#include <xtensor-blas/xblas.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <limits>
#include <new>

#include "../array/array.hpp"
#include "../array/internal/error.hpp"
#include "../array/internal/parallel.hpp"
#include "instruction_sets.hpp"
#include "vector_loops.hpp"

// OpenBLAS's own functions; null with another BLAS.
extern "C" {
void openblas_set_num_threads(int) __attribute__((weak));
int openblas_get_num_threads() __attribute__((weak));
}

namespace tapegrad::detail {
namespace {

// The first-level cache. BLAS packs a larger b, which takes longer than a product with a few rows.
constexpr std::size_t kPackedBytes = std::size_t{1} << 15;

// Parts begin at multiples of this many rows or columns: a multiple of BLAS's register tiles and of a vector.
constexpr std::size_t kUnit = 16;

constexpr std::size_t kFewRows = 8;

// The number of threads for a compute-bound product.
std::size_t threads_for(std::size_t multiplications) {
  constexpr std::size_t kWorthAThread = std::size_t{1} << 18;  // some five microseconds
  return std::clamp<std::size_t>(multiplications / kWorthAThread, 1, std::min(threads_here(), kMaxChunks));
}

// True if a product is bound by reading b, not by multiplying.
template <class T> bool is_bound_by_reading(const Matrix<const T>& a, const Matrix<const T>& b) {
  const bool few = b.transposed && a.rows <= kFewRows && b.rows * b.columns * sizeof(T) > kPackedBytes;
  return !a.transposed && (a.rows == 1 || few);
}

template <class T, class B>
FewRows<T, B> few_rows(const Matrix<const T>& a, const Matrix<const B>& b, const Matrix<T>& c, T alpha, T beta) {
  return {a.data, b.data, c.data, a.stride, b.stride, c.stride, c.rows, a.columns, c.columns, alpha, beta};
}

using BlasInt = int;  // except in BLAS libraries built for 64-bit indices

template <class T> void require_blas_extents(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) {
  constexpr std::size_t kMax = std::numeric_limits<BlasInt>::max();
  const std::size_t largest = std::max({c.rows, c.columns, a.columns, a.stride, b.stride, c.stride});
  require(largest <= kMax, "gemm", "expected rows, columns and row strides of at most ", kMax,
          ", the largest integer of BLAS, got ", largest);
}

// Throws std::bad_alloc if there is no address space for this thread's buffer: OpenBLAS would retry forever.
void require_blas_buffer() {
  static thread_local bool has_buffer = false;
  if (has_buffer || openblas_set_num_threads == nullptr) return;
  // The first product competes with OpenBLAS's own idle threads, which may still be waiting for their buffers.
  static std::atomic<bool> is_first{true};
  const int idle = is_first ? std::clamp(openblas_get_num_threads() - 1, 0, 3) : 0;
  if (!can_map((1 + static_cast<std::size_t>(idle)) * kBlasBufferBytes)) throw std::bad_alloc();
  openblas_set_num_threads(1);  // products run on the pool's threads, like our other loops
  is_first = false;
  has_buffer = true;
}

template <class T>
void blas_gemm(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, T alpha, T beta) {
  const ExitGuard guard;
  require_blas_buffer();
  const auto leading = [](const auto& m) { return static_cast<BlasInt>(std::max<std::size_t>(m.stride, 1)); };
  const auto transpose = [](const auto& m) { return m.transposed ? cxxblas::Trans : cxxblas::NoTrans; };
  cxxblas::gemm<BlasInt>(cxxblas::RowMajor, transpose(a), transpose(b), static_cast<BlasInt>(c.rows),
                         static_cast<BlasInt>(c.columns), static_cast<BlasInt>(a.columns), alpha, a.data, leading(a),
                         b.data, leading(b), beta, c.data, leading(c));
}

// Writes the transpose of m, in blocks of 4 x 4.
template <class T> void copy_transposed(const Matrix<const T>& m, T* to) {
  using Vector [[gnu::vector_size(4 * sizeof(T))]] = T;
  const auto zip = [](const Vector& a, const Vector& b, Vector* to) {
    to[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    to[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  };
  const std::size_t rows = m.rows / 4 * 4, columns = m.columns / 4 * 4;
  for (std::size_t r = 0; r < rows; r += 4)
    for (std::size_t c = 0; c < columns; c += 4) {
      Vector x[4], y[4];
      for (std::size_t i = 0; i < 4; ++i) std::memcpy(&x[i], m.row(r + i) + c, sizeof(Vector));
      zip(x[0], x[2], y);
      zip(x[1], x[3], y + 2);
      zip(y[0], y[2], x);
      zip(y[1], y[3], x + 2);
      for (std::size_t i = 0; i < 4; ++i) std::memcpy(to + (c + i) * m.rows + r, &x[i], sizeof(Vector));
    }
  for (std::size_t r = 0; r < m.rows; ++r)
    for (std::size_t c = r < rows ? columns : 0; c < m.columns; ++c) to[c * m.rows + r] = m.row(r)[c];
}

// Divides a product into blocks of at most a million multiplications, for which OpenBLAS's AVX-512 kernels do not pack
// operands, and copies a small transposed b, which they would pack. Faster only if all blocks share a small b or c.
template <class T>
void blas_gemm_in_blocks(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, T alpha, T beta) {
  constexpr std::size_t kSmall = 128 * 128, kUnpacked = 1000000, kRowsWorthACopy = 4;
  if (b.transposed && b.rows * b.columns <= kSmall && c.rows >= kRowsWorthACopy) {
    T copy[kSmall];  // on the stack, because the pool's threads do not allocate
    copy_transposed(b.t(), copy);
    return blas_gemm_in_blocks(a, Matrix<const T>(copy, b.rows, b.columns), c, alpha, beta);
  }
  const std::size_t extent = a.transposed ? a.columns : c.rows, slice = (a.transposed ? c.rows : a.columns) * c.columns;
  if (slice > kSmall || extent * slice <= kUnpacked) return blas_gemm(a, b, c, alpha, beta);
  const std::size_t step = kUnpacked / slice / kUnit * kUnit;
  for (std::size_t i = 0; i < extent; i += step) {
    const std::size_t end = std::min(i + step, extent);
    if (a.transposed)
      blas_gemm(a.columns_between(i, end), b.rows_between(i, end), c, alpha, i == 0 ? beta : T(1));
    else
      blas_gemm(a.rows_between(i, end), b, c.rows_between(i, end), alpha, beta);
  }
}

// Division by rows, columns or the inner extent. For few rows it and the rounding depend on the shapes only.
template <class T> struct Plan {
  bool reads_once;  // by our loops, without BLAS
  std::size_t parts;
  bool splits_inner;

  Plan(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c) : reads_once(is_bound_by_reading(a, b)) {
    if (!reads_once) require_blas_extents(a, b, c);
    const std::size_t inner = a.columns, size = inner * b.columns;
    if (reads_once) {
      parts = chunks_for(size / 2);              // reading an element takes half as long as a step
      const std::size_t enough = parts * kUnit;  // a part reads whole stored rows of b if there are enough
      splits_inner = inner >= enough && (!b.transposed || b.columns < enough);
    } else {
      parts = threads_for(a.rows * size);
      splits_inner = inner > std::max(a.rows, b.columns);  // as in the gradient of a weight
    }
    splits_inner = splits_inner && parts > 1;
  }

  void multiply(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, T alpha, T beta) const {
    if (!reads_once) return blas_gemm_in_blocks(a, b, c, alpha, beta);
    const VectorLoops<T>& loops = vector_loops<T>();
    (b.transposed ? loops.few_rows_by_transpose : loops.row_by_matrix)(few_rows(a, b, c, alpha, beta));
  }
};

// body(first, last) for ranges of rows or columns, on several threads.
template <class Body> void for_each_range(std::size_t extent, std::size_t parts, Body body) {
  parallel_for((extent + kUnit - 1) / kUnit, parts,
               [&](std::size_t begin, std::size_t end) { body(begin * kUnit, std::min(end * kUnit, extent)); });
}

// Divides the rows of c among threads, or the columns if there are more of them. c may begin as a bias in every row.
template <class T>
void gemm_by_parts(const Plan<T>& plan, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, T alpha,
                   T beta, const T* bias = nullptr) {
  const bool by_rows = c.rows >= c.columns;
  for_each_range(std::max(c.rows, c.columns), plan.parts, [&](std::size_t first, std::size_t last) {
    const Matrix<T> part = by_rows ? c.rows_between(first, last) : c.columns_between(first, last);
    if (bias != nullptr)
      for (std::size_t r = 0; r < part.rows; ++r) std::copy_n(bias + (by_rows ? 0 : first), part.columns, part.row(r));
    plan.multiply(by_rows ? a.rows_between(first, last) : a, by_rows ? b : b.columns_between(first, last), part, alpha,
                  beta);
  });
}

// Split-K: each thread multiplies a part of the inner extent, the first into c, the others into terms added at the end.
template <class T>
void gemm_split_k(const Plan<T>& plan, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta) {
  const std::size_t size = c.rows * c.columns;
  Array<T> others(Shape{plan.parts - 1, size});
  parallel_for(a.columns, plan.parts, [&](std::size_t begin, std::size_t end, std::size_t part) {
    const Matrix<T> sum = part == 0 ? c : Matrix<T>(others.data() + (part - 1) * size, c.rows, c.columns);
    plan.multiply(a.columns_between(begin, end), b.rows_between(begin, end), sum, alpha, part == 0 ? beta : T(0));
  });
  parallel_for(c.rows, chunks_for(others.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r)
      for (std::size_t at = r * c.columns; at < others.size(); at += size)
        vector_loops<T>().add(others.data() + at, c.row(r), c.columns);
  });
}

// The matrix converted to T, with contiguous stored rows in `to`.
template <class T> Matrix<const T> widen(const Matrix<const BFloat16>& m, T* to) {
  const std::size_t rows = m.transposed ? m.columns : m.rows, length = m.transposed ? m.rows : m.columns;
  for (std::size_t r = 0; r < rows; ++r)
    run_vectorized([from = m.row(r), to = to + r * length, length] {
      for (std::size_t i = 0; i < length; ++i) to[i] = from[i];
    });
  return {to, m.rows, m.columns, length, m.transposed};
}

// A contiguous row, such as a column stored without gaps.
template <class T> Matrix<T> as_row(Matrix<T> m) {
  const bool is_column_in_memory = m.rows == 1 && m.transposed && m.stride == 1;
  return is_column_in_memory ? Matrix<T>(m.data, 1, m.columns) : m;
}

bool fits(const auto& a, const auto& b, const auto& c) {
  return a.columns == b.rows && c.rows == a.rows && c.columns == b.columns && !c.transposed;
}

}  // namespace

template <class T> void gemm_on_this_thread(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta) {
  assert(fits(a, b, c));
  if (c.rows == 0 || c.columns == 0) return;
  Plan<T>(a, b, c).multiply(a, b, c, alpha, beta);
}

template <class T> void gemm(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, T alpha, T beta) {
  assert(fits(a, b, c));
  if (c.rows == 0 || c.columns == 0) return;
  if (c.columns == 1 && c.rows > 1 && c.stride == 1)
    return gemm(b.t(), a.t(), Matrix<T>(c.data, 1, c.rows), alpha, beta);
  a = as_row(a);
  const Plan<T> plan(a, b, c);
  if (plan.splits_inner) return gemm_split_k(plan, a, b, c, alpha, beta);
  gemm_by_parts(plan, a, b, c, alpha, beta);
}

template <class T> void gemm(Matrix<const T> a, Matrix<const BFloat16> b, Matrix<T> c, T alpha, T beta) {
  assert(fits(a, b, c));
  if (c.rows == 0 || c.columns == 0) return;
  const std::size_t inner = a.columns;
  if (!a.transposed && b.transposed && a.rows <= kFewRows)
    return for_each_range(c.columns, chunks_for(inner * c.columns / 4), [&](std::size_t first, std::size_t last) {
      vector_loops<T>().few_rows_by_bfloat16(
          few_rows(a, b.columns_between(first, last), c.columns_between(first, last), alpha, beta));
    });
  // Equally many parts per thread, of as many columns as fit into the second-level cache.
  constexpr std::size_t kCached = std::size_t{1} << 18;  // elements
  const std::size_t at_once = std::max<std::size_t>(kCached / std::max<std::size_t>(inner, 1) / kUnit, 1) * kUnit;
  const std::size_t share = at_once * threads_for(a.rows * inner * c.columns);
  const std::size_t parts = (c.columns + share - 1) / share * (share / at_once);
  for_each_range(c.columns, parts, [&](std::size_t first, std::size_t last) {
    Array<T> scratch(Shape{std::min(at_once, last - first) * inner});
    for (; first < last; first += at_once) {
      const std::size_t end = std::min(first + at_once, last);
      gemm_on_this_thread(a, widen(b.columns_between(first, end), scratch.data()), c.columns_between(first, end), alpha,
                          beta);
    }
  });
}

template <class T> void gemm_plus_bias(Matrix<const T> a, Matrix<const T> b, const T* bias, Matrix<T> c) {
  assert(fits(a, b, c));
  if (c.rows == 0 || c.columns == 0) return;
  gemm_by_parts(Plan<T>(a, b, c), a, b, c, T(1), T(1), bias);
}

template <class T> void gemm_plus_bias(Matrix<const T> a, Matrix<const BFloat16> b, const T* bias, Matrix<T> c) {
  for (std::size_t r = 0; r < c.rows; ++r) std::copy_n(bias, c.columns, c.row(r));
  gemm(a, b, c, T(1), T(1));
}

#define INSTANTIATE(T)                                                                  \
  template void gemm(Matrix<const T>, Matrix<const T>, Matrix<T>, T, T);                \
  template void gemm_on_this_thread(Matrix<const T>, Matrix<const T>, Matrix<T>, T, T); \
  template void gemm(Matrix<const T>, Matrix<const BFloat16>, Matrix<T>, T, T);         \
  template void gemm_plus_bias(Matrix<const T>, Matrix<const T>, const T*, Matrix<T>);  \
  template void gemm_plus_bias(Matrix<const T>, Matrix<const BFloat16>, const T*, Matrix<T>);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad::detail
