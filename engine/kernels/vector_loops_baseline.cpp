#include "vector_loops.ipp"

namespace tapegrad::detail {

template <>
constinit const VectorLoops<float> VectorLoopsFor<float>::baseline =
    Loops<float, xsimd::default_arch>::table(xsimd::default_arch::name());
template <>
constinit const VectorLoops<double> VectorLoopsFor<double>::baseline =
    Loops<double, xsimd::default_arch>::table(xsimd::default_arch::name());

}  // namespace tapegrad::detail
