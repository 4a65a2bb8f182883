/// The instruction sets that loops are compiled for; one is chosen at run time. Those of x86-64 beyond its baseline are
/// there when the build defines TAPEGRAD_X86_INSTRUCTION_SETS; otherwise the baseline is all there is.
#pragma once

#include <vector>

namespace tapegrad::detail {

enum class InstructionSet {
  baseline,  ///< what every processor has that the build is for: SSE2 on x86-64
  avx2,      ///< with FMA
  avx512,    ///< F, CD, DQ and BW
};

/// Those that this processor has, the best last.
std::vector<InstructionSet> instruction_sets();

/// The one in use: that which the environment variable TAPEGRAD_INSTRUCTION_SET names, or without one the best, unless
/// a test chose another. Throws std::invalid_argument where the variable names none of instruction_sets().
InstructionSet instruction_set();

/// Chooses the set in use, one of instruction_sets(); for tests, while no other thread computes.
void use_instruction_set(InstructionSet set);

#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
// A function may inline what is compiled for fewer instructions than itself: `flatten` makes the loop a part of it, and
// the compiler vectorizes it there. Nothing else is compiled for that set. The loop is taken by value: what it has
// captured is then known not to lie among the elements that it writes.
template <class Loop> [[gnu::target("avx2,fma"), gnu::flatten, gnu::noinline]] void run_with_avx2(Loop loop) { loop(); }
template <class Loop>
[[gnu::target("avx512f,avx512cd,avx512dq,avx512bw,avx2,fma"), gnu::flatten, gnu::noinline]] void run_with_avx512(
    Loop loop) {
  loop();
}
#endif

/// Calls loop(), compiled for the instruction set in use. For plain loops that a compiler vectorizes by itself, which
/// stand with the formula that they compute; what needs more than that is one of VectorLoops.
template <class Loop> void run_vectorized(Loop loop) {
#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
  switch (instruction_set()) {
    case InstructionSet::avx512:
      return run_with_avx512(loop);
    case InstructionSet::avx2:
      return run_with_avx2(loop);
    case InstructionSet::baseline:
      break;
  }
#endif
  loop();
}

}  // namespace tapegrad::detail
