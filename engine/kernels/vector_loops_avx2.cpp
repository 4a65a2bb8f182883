#include "vector_loops.ipp"

namespace tapegrad::detail {

template <>
constinit const VectorLoops<float> VectorLoopsFor<float>::avx2 = Loops<float, xsimd::fma3<xsimd::avx2>>::table("AVX2");
template <>
constinit const VectorLoops<double> VectorLoopsFor<double>::avx2 =
    Loops<double, xsimd::fma3<xsimd::avx2>>::table("AVX2");

}  // namespace tapegrad::detail
