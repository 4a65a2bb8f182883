#include "instruction_sets.hpp"

#include <atomic>
#include <string>
#include <string_view>

#include "../array/internal/environment.hpp"
#include "../array/internal/error.hpp"
#include "vector_loops.ipp"

namespace tapegrad::detail {
namespace {

const char* name_of(InstructionSet set) {
  constexpr const char* kNames[]{"baseline", "avx2", "avx512"};
  return kNames[static_cast<std::size_t>(set)];
}

InstructionSet default_set() {
  const std::vector<InstructionSet> sets = instruction_sets();
  const std::string_view given = environment("TAPEGRAD_INSTRUCTION_SET");
  if (given.empty()) return sets.back();
  std::string names;
  for (const InstructionSet set : sets) {
    if (given == name_of(set)) return set;
    names += (names.empty() ? "" : ", ") + std::string(name_of(set));
  }
  fail<std::invalid_argument>("instruction_set",
                              "expected TAPEGRAD_INSTRUCTION_SET to name an instruction set of this processor (", names,
                              "), got ", given);
}

constexpr auto kNone = static_cast<InstructionSet>(-1);  // before the first use
std::atomic<InstructionSet> chosen{kNone};

const LoopsOfSet& loops_of([[maybe_unused]] InstructionSet set) {
#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
  if (set == InstructionSet::avx512) return avx512_loops;
  if (set == InstructionSet::avx2) return avx2_loops;
#endif
  return baseline_loops;
}

}  // namespace

constinit const LoopsOfSet baseline_loops = loops_of_set<xsimd::default_arch>(xsimd::default_arch::name());

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

// Threads racing for the first use get the same set.
InstructionSet instruction_set() {
  InstructionSet set = chosen.load(std::memory_order_relaxed);
  if (set == kNone) chosen = set = default_set();
  return set;
}

void use_instruction_set(InstructionSet set) { chosen = set; }

template <class T> const VectorLoops<T>& vector_loops() { return loops_of(instruction_set()); }

template <class T> std::vector<const VectorLoops<T>*> all_vector_loops() {
  std::vector<const VectorLoops<T>*> all;
  for (const InstructionSet set : instruction_sets()) all.push_back(&loops_of(set));
  return all;
}

template const VectorLoops<float>& vector_loops();
template const VectorLoops<double>& vector_loops();
template std::vector<const VectorLoops<float>*> all_vector_loops();
template std::vector<const VectorLoops<double>*> all_vector_loops();

}  // namespace tapegrad::detail
