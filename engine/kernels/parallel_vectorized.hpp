/// Plain loops over many elements, on several threads.
#pragma once

#include <cstddef>
#include <type_traits>

#include "../array/internal/parallel.hpp"
#include "instruction_sets.hpp"

namespace tapegrad::detail {

/// Calls body(begin, end), or body(begin, end, chunk), for ranges that make up 0, ..., count - 1, compiled for the
/// instruction set in use, on as many threads as the count is worth. Each call has a copy of the body: what it has
/// captured by value is then known not to lie among the elements that it writes.
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
