/// Finds parameters that are untrained copies of others. For the library's own sources.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace tapegrad::detail {

/// The parameters' paths with their arrays, in the model's order.
using HeldArrays = std::vector<std::pair<std::string, const void*>>;

/// Prints a line for each part of a model with unchanged copies. Copies share an array until one of them changes, so
/// parameters with equal numbers by chance, or trained since, do not count.
void print_copies(std::ostream& out, const HeldArrays& parameters);

}  // namespace tapegrad::detail
