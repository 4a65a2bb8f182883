#include "vector_loops.ipp"

namespace tapegrad::detail {

constinit const LoopsOfSet baseline_loops = loops_of_set<xsimd::default_arch>(xsimd::default_arch::name());

}  // namespace tapegrad::detail
