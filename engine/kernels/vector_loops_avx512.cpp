#include "vector_loops.ipp"

namespace tapegrad::detail {

template <>
constinit const VectorLoops<float> VectorLoopsFor<float>::avx512 = Loops<float, xsimd::avx512bw>::table("AVX-512");
template <>
constinit const VectorLoops<double> VectorLoopsFor<double>::avx512 = Loops<double, xsimd::avx512bw>::table("AVX-512");

}  // namespace tapegrad::detail
