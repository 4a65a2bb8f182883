/// The check of a layer's sizes. For the library's own sources.
#pragma once

#include <cstddef>
#include <limits>

#include "../../engine/array/internal/error.hpp"

namespace tapegrad::detail {

/// Sizes are positive. One above two thousand million is a negative number that became unsigned, or would be refused by
/// the memory anyway.
inline void require_size(const char* layer, const char* name, std::size_t size) {
  constexpr std::size_t largest = std::numeric_limits<std::int32_t>::max();
  require(1 <= size && size <= largest, layer, "expected ", name, " from 1 to ", largest, ", got ",
          static_cast<std::ptrdiff_t>(size));
}

}  // namespace tapegrad::detail
