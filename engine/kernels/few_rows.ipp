// Products with a few rows on the left, for one instruction set; included by vector_loops.ipp. They are bound by
// reading b, so they read its rows one after the other, the order in which memory is fastest: four rows side by side
// take twice as long. Each element of the result is summed in a fixed order, independent of the division among threads.
#include "few_rows.hpp"
#include "lanes.ipp"

namespace tapegrad::detail {
namespace {

template <class T, class Arch, class B = T> struct FewRowsLoops {
  using Batch = xsimd::batch<T, Arch>;
  using Product = FewRows<T, B>;
  static constexpr std::size_t kLanes = Batch::size;

  static Batch load(const T* x, std::size_t n) {
    return n == kLanes ? Batch::load_unaligned(x) : Part<T, Arch>::load(x, n, T(0));
  }
  static Batch load(const BFloat16* x, std::size_t n) { return Widened<T, Arch>::load(x, n); }
  static void store(const Batch& batch, T* y, std::size_t n) {
    n == kLanes ? batch.store_unaligned(y) : Part<T, Arch>::store(batch, y, n);
  }

  // Writes alpha product + beta c to n elements of c.
  static void store_product(const Product& p, const Batch& product, T* c, std::size_t n) {
    const Batch scaled = Batch(p.alpha) * product;
    store(p.beta == 0 ? scaled : xsimd::fma(Batch(p.beta), load(c, n), scaled), c, n);
  }

  // The products of rows r, ..., r + R - 1 of a with rows first, ..., first + n - 1 of b, n <= kLanes: each in a vector
  // of partial sums. The lanes of kLanes vectors are then reduced together.
  template <std::size_t R> static void dots(const Product& p, std::size_t r, std::size_t first, std::size_t n) {
    const T* const a = p.a + r * p.a_stride;
    Batch sums[R][kLanes];
    for (std::size_t i = 0; i < R; ++i)
      for (std::size_t c = n; c < kLanes; ++c) sums[i][c] = Batch(T(0));
    for (std::size_t c = 0; c < n; ++c) {
      const B* const b = p.b + (first + c) * p.b_stride;
      Batch even[R], odd[R];  // two sums hide the latency of an addition
      for (std::size_t i = 0; i < R; ++i) even[i] = odd[i] = Batch(T(0));
      const auto add_to = [&](Batch* total, std::size_t k, std::size_t lanes) {
        const Batch y = load(b + k, lanes);
        for (std::size_t i = 0; i < R; ++i) total[i] = xsimd::fma(load(a + i * p.a_stride + k, lanes), y, total[i]);
      };
      std::size_t k = 0;
      for (; k + 2 * kLanes <= p.inner; k += 2 * kLanes) {
        add_to(even, k, kLanes);
        add_to(odd, k + kLanes, kLanes);
      }
      for (; k + kLanes <= p.inner; k += kLanes) add_to(even, k, kLanes);
      if (k < p.inner) add_to(odd, k, p.inner - k);
      for (std::size_t i = 0; i < R; ++i) sums[i][c] = even[i] + odd[i];
    }
    for (std::size_t i = 0; i < R; ++i) {
      T* const c = p.c + (r + i) * p.c_stride + first;
      store_product(p, sums_of_lanes(sums[i]), c, n);
    }
  }

  static void few_rows_by_transpose(const Product& p) {
    for (std::size_t c = 0; c < p.columns; c += kLanes) {
      const std::size_t n = p.columns - c < kLanes ? p.columns - c : kLanes;
      std::size_t r = 0;
      for (; r + 4 <= p.rows; r += 4) dots<4>(p, r, c, n);
      for (; r + 2 <= p.rows; r += 2) dots<2>(p, r, c, n);
      if (r < p.rows) dots<1>(p, r, c, n);
    }
  }

  // A row of N whole vectors and a partial or whole one, with sums in registers.
  template <std::size_t N> static void narrow_row(const Product& p) {
    if constexpr (N > 0)
      if (p.columns <= N * kLanes) return narrow_row<N - 1>(p);
    const T* b = p.b;
    const std::size_t rest = p.columns - N * kLanes;
    const auto initial = [&](std::size_t j, std::size_t n) {
      return p.beta == 0 ? Batch(T(0)) : Batch(p.beta) * load(p.c + j * kLanes, n);
    };
    Batch sums[N + 1], last = initial(N, rest);
    for (std::size_t j = 0; j < N; ++j) sums[j] = initial(j, kLanes);
    for (std::size_t k = 0; k < p.inner; ++k, b += p.b_stride) {
      const Batch factor(p.alpha * p.a[k]);
      for (std::size_t j = 0; j < N; ++j) sums[j] = xsimd::fma(factor, Batch::load_unaligned(b + j * kLanes), sums[j]);
      last = xsimd::fma(factor, load(b + N * kLanes, rest), last);
    }
    for (std::size_t j = 0; j < N; ++j) store(sums[j], p.c + j * kLanes, kLanes);
    store(last, p.c + N * kLanes, rest);
  }

  // Adds row k of b, times the element k of a, to columns first, ..., last - 1 of c.
  static void add_row(const Product& p, std::size_t k, std::size_t first, std::size_t last) {
    const T* const b = p.b + k * p.b_stride;
    const Batch factor(p.alpha * p.a[k]);
    std::size_t j = first;
    for (; j + kLanes <= last; j += kLanes)
      xsimd::fma(factor, Batch::load_unaligned(b + j), Batch::load_unaligned(p.c + j)).store_unaligned(p.c + j);
    if (j < last) store(xsimd::fma(factor, load(b + j, last - j), load(p.c + j, last - j)), p.c + j, last - j);
  }

  static void row_by_matrix(const Product& p) {
    constexpr std::size_t kNarrow = 8;                 // vectors
    constexpr std::size_t kBlock = 16384 / sizeof(T);  // columns; their sums fit in the first-level cache
    if (p.columns <= kNarrow * kLanes) return narrow_row<kNarrow - 1>(p);
    for (std::size_t j = 0; j < p.columns; ++j) p.c[j] = p.beta == 0 ? T(0) : p.beta * p.c[j];
    for (std::size_t first = 0; first < p.columns; first += kBlock)
      for (std::size_t k = 0; k < p.inner; ++k)
        add_row(p, k, first, p.columns - first < kBlock ? p.columns : first + kBlock);
  }
};

}  // namespace
}  // namespace tapegrad::detail
