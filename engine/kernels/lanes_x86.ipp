// Instructions of AVX2 and AVX-512 missing in xsimd. Included by lanes.ipp.

namespace tapegrad::detail {
namespace {

// Moves the numbers to the upper halves of lanes, with lower halves of 0.
template <class Arch> xsimd::batch<float, Arch> widened_floats(const BFloat16* x) {
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

#if defined(__AVX512F__)
template <class Arch> struct Part<float, Arch> {
  using Batch = xsimd::batch<float, Arch>;
  static __mmask16 first(std::size_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static Batch load(const float* x, std::size_t n, float fill) {
    return _mm512_mask_loadu_ps(_mm512_set1_ps(fill), first(n), x);
  }
  static void store(const Batch& batch, float* y, std::size_t n) { _mm512_mask_storeu_ps(y, first(n), batch); }
};
template <class Arch> struct Part<double, Arch> {
  using Batch = xsimd::batch<double, Arch>;
  static __mmask8 first(std::size_t n) { return static_cast<__mmask8>((1u << n) - 1); }
  static Batch load(const double* x, std::size_t n, double fill) {
    return _mm512_mask_loadu_pd(_mm512_set1_pd(fill), first(n), x);
  }
  static void store(const Batch& batch, double* y, std::size_t n) { _mm512_mask_storeu_pd(y, first(n), batch); }
};

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
template <class Arch> struct Part<float, Arch> {
  using Batch = xsimd::batch<float, Arch>;
  static __m256i first(std::size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Batch load(const float* x, std::size_t n, float fill) {
    return _mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(x, first(n)), _mm256_castsi256_ps(first(n)));
  }
  static void store(const Batch& batch, float* y, std::size_t n) { _mm256_maskstore_ps(y, first(n), batch); }
};
template <class Arch> struct Part<double, Arch> {
  using Batch = xsimd::batch<double, Arch>;
  static __m256i first(std::size_t n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(static_cast<long long>(n)), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static Batch load(const double* x, std::size_t n, double fill) {
    return _mm256_blendv_pd(_mm256_set1_pd(fill), _mm256_maskload_pd(x, first(n)), _mm256_castsi256_pd(first(n)));
  }
  static void store(const Batch& batch, double* y, std::size_t n) { _mm256_maskstore_pd(y, first(n), batch); }
};
#endif

}  // namespace
}  // namespace tapegrad::detail
