/// Plain loops over many elements, on several threads.
#pragma once

#include <cstddef>
#include <type_traits>

#include "../array/internal/parallel.hpp"
#include "instruction_sets.hpp"

namespace tapegrad::detail {

/// Splits 0, ..., count - 1 into ranges and calls body(begin, end), or body(begin, end, chunk), on several threads and
/// compiled for the instruction set in use. Each call copies the body, so its captures cannot alias its results.
template <class Body> void parallel_vectorized(std::size_t count, const Body& body) {
  parallel_for(count, chunks_for(count), [&](std::size_t begin, std::size_t end, std::size_t chunk) {
    run_vectorized([=] {
      if constexpr (std::is_invocable_v<const Body&, std::size_t, std::size_t, std::size_t>)
        body(begin, end, chunk);
      else
        body(begin, end);
    });
  });
}

}  // namespace tapegrad::detail
