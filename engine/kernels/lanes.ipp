// Loads, stores and sums of whole and partial batches. Included like vector_loops.ipp, under the same rules.
#pragma once

#include <xsimd/xsimd.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../array/bfloat16.hpp"

namespace tapegrad::detail {
namespace {

// The first n elements of a batch, without access to memory after them; the other lanes hold `fill`.
template <class Batch, class T> Batch load_part(const T* x, std::size_t n, T fill) {
  alignas(64) T lanes[Batch::size];
  for (std::size_t i = 0; i < Batch::size; ++i) lanes[i] = i < n ? x[i] : fill;
  return Batch::load_aligned(lanes);
}
template <class Batch, class T> void store_part(const Batch& batch, T* y, std::size_t n) {
  alignas(64) T lanes[Batch::size];
  batch.store_aligned(lanes);
  for (std::size_t i = 0; i < n; ++i) y[i] = lanes[i];
}

// A batch of bfloat16.
template <class Batch> Batch load_widened(const BFloat16* x) {
  alignas(64) typename Batch::value_type lanes[Batch::size];
  for (std::size_t i = 0; i < Batch::size; ++i)
    lanes[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(x[i].bits) << 16);
  return Batch::load_aligned(lanes);
}

// The sum of all lanes, called reduce_add since xsimd 9.
template <class T, class Arch> T sum_of_lanes(const xsimd::batch<T, Arch>& x) {
  if constexpr (requires { hadd(x); })
    return hadd(x);
  else
    return reduce_add(x);
}

// Lane c of the result is the sum of the lanes of row c; there are as many rows as lanes.
template <class T, class Arch> xsimd::batch<T, Arch> sums_of_lanes(const xsimd::batch<T, Arch>* rows) {
  return xsimd::haddp(rows);
}

// Overloads with instructions missing in xsimd.
#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
#if defined(__AVX512F__)
__mmask16 first_lanes(std::size_t n) { return static_cast<__mmask16>((1u << n) - 1); }
template <class Batch> Batch load_part(const float* x, std::size_t n, float fill) {
  return _mm512_mask_loadu_ps(_mm512_set1_ps(fill), first_lanes(n), x);
}
template <class Batch> Batch load_part(const double* x, std::size_t n, double fill) {
  return _mm512_mask_loadu_pd(_mm512_set1_pd(fill), static_cast<__mmask8>(first_lanes(n)), x);
}
template <class Batch> void store_part(const Batch& batch, float* y, std::size_t n) {
  _mm512_mask_storeu_ps(y, first_lanes(n), batch);
}
template <class Batch> void store_part(const Batch& batch, double* y, std::size_t n) {
  _mm512_mask_storeu_pd(y, static_cast<__mmask8>(first_lanes(n)), batch);
}

// xsimd 8.1 returns the sums of sixteen lanes in another order. Folds pairs of rows until one is left.
template <class Arch> xsimd::batch<float, Arch> sums_of_lanes(const xsimd::batch<float, Arch>* rows) {
  __m512 pairs[8], fours[4];  // in every quarter of a vector: sums of 2 rows, twice; sums of 4 rows
  for (int i = 0; i < 8; ++i)
    pairs[i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]) + _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(pairs[2 * i]), b = _mm512_castps_pd(pairs[2 * i + 1]);
    fours[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)) + _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
  }
  const auto fold_quarters = [](__m512 a, __m512 b) {
    return _mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(2, 0, 2, 0)) + _mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(3, 1, 3, 1));
  };
  return fold_quarters(fold_quarters(fours[0], fours[1]), fold_quarters(fours[2], fours[3]));
}
#elif defined(__AVX2__)
__m256i first_floats(std::size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
__m256i first_doubles(std::size_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(static_cast<long long>(n)), _mm256_setr_epi64x(0, 1, 2, 3));
}
template <class Batch> Batch load_part(const float* x, std::size_t n, float fill) {
  const __m256i first = first_floats(n);
  return _mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(x, first), _mm256_castsi256_ps(first));
}
template <class Batch> Batch load_part(const double* x, std::size_t n, double fill) {
  const __m256i first = first_doubles(n);
  return _mm256_blendv_pd(_mm256_set1_pd(fill), _mm256_maskload_pd(x, first), _mm256_castsi256_pd(first));
}
template <class Batch> void store_part(const Batch& batch, float* y, std::size_t n) {
  _mm256_maskstore_ps(y, first_floats(n), batch);
}
template <class Batch> void store_part(const Batch& batch, double* y, std::size_t n) {
  _mm256_maskstore_pd(y, first_doubles(n), batch);
}
#endif

// Moves the numbers to the upper halves of lanes, with lower halves of 0.
template <class Batch>
requires std::is_same_v<typename Batch::value_type, float> Batch load_widened(const BFloat16* x) {
#if defined(__AVX512F__)
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
#elif defined(__AVX2__)
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
#else
  const __m128i halves = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
  return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), halves));
#endif
}
#endif

// The first n <= size elements of a batch; the other lanes hold `fill`, or 0.
template <class Batch, class T> Batch load(const T* x, std::size_t n, T fill = T(0)) {
  return n == Batch::size ? Batch::load_unaligned(x) : load_part<Batch>(x, n, fill);
}
template <class Batch> Batch load(const BFloat16* x, std::size_t n) {
  if (n == Batch::size) return load_widened<Batch>(x);
  BFloat16 part[Batch::size];
  for (std::size_t i = 0; i < Batch::size; ++i) part[i].bits = i < n ? x[i].bits : 0;
  return load_widened<Batch>(part);
}
template <class Batch, class T> void store(const Batch& batch, T* y, std::size_t n) {
  n == Batch::size ? batch.store_unaligned(y) : store_part(batch, y, n);
}

// Adds n elements to several sums, which hide the latency of an addition: add(sum, i, lanes) adds those from i on.
template <std::size_t kLanes, class Sum, std::size_t N, class Add>
void accumulate(Sum (&sums)[N], std::size_t n, Add add) {
  std::size_t i = 0;
  for (; i + N * kLanes <= n; i += N * kLanes)
    for (std::size_t k = 0; k < N; ++k) add(sums[k], i + k * kLanes, kLanes);
  for (; i + kLanes <= n; i += kLanes) add(sums[0], i, kLanes);
  if (i < n) add(sums[N > 1 ? 1 : 0], i, n - i);
}

}  // namespace
}  // namespace tapegrad::detail
