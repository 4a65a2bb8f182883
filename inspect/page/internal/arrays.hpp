/// Arrays as a page has them: averaged down where they are large, with the statistics of all their numbers. For the
/// library's own sources.
#pragma once

#include <cstddef>
#include <vector>

#include "../../../engine/array/array.hpp"
#include "json.hpp"

namespace tapegrad::detail {

/// How many places along each axis become one, so that at most `most` numbers are left: powers of two, of which the
/// longest axes take the largest. All are 1 where nothing needs to be averaged.
std::vector<std::size_t> pooling(const Shape& shape, std::size_t most);

/// How many numbers that leaves.
std::size_t pooled_size(const Shape& shape, const std::vector<std::size_t>& pooled);

/// {"shape", "pooled"?, "data", "statistics"}
template <class T> Json array_json(const Array<T>& array, std::size_t most);

}  // namespace tapegrad::detail
