/// Checks of layer sizes. For the library's own sources.
#pragma once

#include <cstddef>
#include <limits>

#include "../../engine/array/internal/error.hpp"

namespace tapegrad::detail {

/// Throws std::invalid_argument unless the size is positive. Sizes above 2^31 are negative numbers converted to
/// unsigned, or do not fit into memory.
inline void require_size(const char* layer, const char* name, std::size_t size) {
  constexpr std::size_t largest = std::numeric_limits<std::int32_t>::max();
  require(1 <= size && size <= largest, layer, "expected ", name, " from 1 to ", largest, ", got ",
          static_cast<std::ptrdiff_t>(size));
}

}  // namespace tapegrad::detail
