/// Arrays on a page: large ones averaged down, with statistics of all numbers. For the library's own sources.
#pragma once

#include <cstddef>
#include <vector>

#include "../../../engine/array/array.hpp"
#include "json.hpp"

namespace tapegrad::detail {

/// The pooling factor of each axis to leave at most `most` numbers: powers of two, doubled for the longest axis until
/// the array is small enough; 1 for a small array.
std::vector<std::size_t> pooling(const Shape& shape, std::size_t most);

/// The number of elements left after pooling.
std::size_t pooled_size(const Shape& shape, const std::vector<std::size_t>& pooled);

/// {"shape", "pooled"?, "data", "statistics"}
template <class T> Json array_json(const Array<T>& array, std::size_t most);

}  // namespace tapegrad::detail
