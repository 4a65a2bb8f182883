#include "vector_loops.ipp"

namespace tapegrad::detail {

constinit const LoopsOfSet avx2_loops = loops_of_set<xsimd::fma3<xsimd::avx2>>("AVX2");

}  // namespace tapegrad::detail
