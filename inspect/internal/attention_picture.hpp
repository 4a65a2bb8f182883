/// Draws attention maps with gnuplot. For the library's own sources.
#pragma once

#include <string>
#include <vector>

#include "../../engine/array/array.hpp"

namespace tapegrad::detail {

/// A gnuplot script to write a PNG of the weights to standard output.
/// weights: (H, T, S), each at least 1, with T queries and S keys; H / layers heads in each layer
std::string picture_script(const Array<double>& weights, std::size_t layers, const std::vector<std::string>& queries,
                           const std::vector<std::string>& keys, const std::string& title);

}  // namespace tapegrad::detail
