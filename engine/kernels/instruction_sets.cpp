#include "instruction_sets.hpp"

#include <atomic>

namespace tapegrad::detail {
namespace {

std::atomic<InstructionSet>& chosen() {
  static std::atomic<InstructionSet> set = instruction_sets().back();
  return set;
}

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets{InstructionSet::baseline};
#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(InstructionSet::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    sets.push_back(InstructionSet::avx512);
#endif
  return sets;
}

InstructionSet instruction_set() { return chosen().load(std::memory_order_relaxed); }

void use_instruction_set(InstructionSet set) { chosen() = set; }

}  // namespace tapegrad::detail
