#include "vector_loops.ipp"

namespace tapegrad::detail {

// xsimd's avx512bw adds only operations on 8 and 16 bits, unused here, and in xsimd 8.1 they do not compile at -O0,
// where GCC's intrinsics are macros. Its avx512dq is defined only together with BW.
constinit const LoopsOfSet avx512_loops = loops_of_set<xsimd::avx512dq>("AVX-512");

}  // namespace tapegrad::detail
