/// Arrays on a page: averaged down if large, with statistics of all their numbers. For the library's own sources.
#pragma once

#include <cstddef>
#include <vector>

#include "../../../engine/array/array.hpp"
#include "json.hpp"

namespace tapegrad::detail {

/// The block size along each axis that leaves at most `max_size` numbers: powers of two, largest along the longest
/// axes. All 1 if the array is small enough.
std::vector<std::size_t> pooling(const Shape& shape, std::size_t max_size);

/// The number of elements left.
std::size_t pooled_size(const Shape& shape, const std::vector<std::size_t>& pooled);

/// {"shape", "pooled"?, "data", "statistics"}
template <class T> Json array_json(const Array<T>& array, std::size_t max_size);

}  // namespace tapegrad::detail
