#include "vector_loops.hpp"

#include "instruction_sets.hpp"

namespace tapegrad::detail {
namespace {

template <class T> const VectorLoops<T>& loops_for([[maybe_unused]] InstructionSet set) {
#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
  if (set == InstructionSet::avx512) return VectorLoopsFor<T>::avx512;
  if (set == InstructionSet::avx2) return VectorLoopsFor<T>::avx2;
#endif
  return VectorLoopsFor<T>::baseline;
}

}  // namespace

template <class T> std::vector<const VectorLoops<T>*> all_vector_loops() {
  std::vector<const VectorLoops<T>*> all;
  for (const InstructionSet set : instruction_sets()) all.push_back(&loops_for<T>(set));
  return all;
}

template <class T> const VectorLoops<T>& vector_loops() { return loops_for<T>(instruction_set()); }

template std::vector<const VectorLoops<float>*> all_vector_loops();
template std::vector<const VectorLoops<double>*> all_vector_loops();
template const VectorLoops<float>& vector_loops();
template const VectorLoops<double>& vector_loops();

}  // namespace tapegrad::detail
