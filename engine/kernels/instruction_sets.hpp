/// Instruction sets of the loops, selected at run time; only the baseline without TAPEGRAD_X86_INSTRUCTION_SETS.
#pragma once

#include <cstddef>
#include <vector>

#include "../array/internal/parallel.hpp"

namespace tapegrad::detail {

enum class InstructionSet {
  baseline,  ///< the build's target: SSE2 on x86-64
  avx2,      ///< with FMA
  avx512,    ///< F, CD, DQ and BW
};

std::vector<InstructionSet> instruction_sets();  ///< The sets of this processor, the best last.

/// The set in use: from the environment variable TAPEGRAD_INSTRUCTION_SET, by default the best, unless a test selected
/// another one. Throws std::invalid_argument if the variable names none of instruction_sets().
InstructionSet instruction_set();

/// Selects one of instruction_sets(); for tests, while no other thread computes.
void use_instruction_set(InstructionSet set);

#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
// `flatten` inlines the loop here, where the compiler vectorizes it for the set; no other code is compiled for it. The
// loop is passed by value, so its captures cannot alias the elements it writes.
template <class Loop> [[gnu::target("avx2,fma"), gnu::flatten, gnu::noinline]] void run_with_avx2(Loop loop) { loop(); }
template <class Loop>
[[gnu::target("avx512f,avx512cd,avx512dq,avx512bw,avx2,fma"), gnu::flatten, gnu::noinline]] void run_with_avx512(
    Loop loop) {
  loop();
}
#endif

/// Calls loop(), compiled for the instruction set in use. VectorLoops has the loops that compilers do not vectorize.
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

/// Splits 0, ..., count - 1 into ranges and calls body(begin, end), or body(begin, end, chunk), on several threads and
/// compiled for the instruction set in use. Each call copies the body, so its captures cannot alias its results.
template <class Body> void parallel_vectorized(std::size_t count, const Body& body) {
  parallel_for(count, chunks_for(count), [&](std::size_t begin, std::size_t end, std::size_t chunk) {
    run_vectorized([=] { call_with_range(body, begin, end, chunk); });
  });
}

}  // namespace tapegrad::detail
