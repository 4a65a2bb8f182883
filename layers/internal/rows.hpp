/// Selections of a batch's rows. For the library's own sources.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../../engine/array/array.hpp"

namespace tapegrad::detail {

/// True for all rows of a batch in order, as in greedy search: selecting them changes nothing. rows: (R)
inline bool are_all_in_order(const IntArray& rows, std::size_t batch) {
  if (rows.size() != batch) return false;
  for (std::size_t i = 0; i < batch; ++i)
    if (rows.data()[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

}  // namespace tapegrad::detail
