/// How a map of attention is drawn by gnuplot. For the library's own sources.
#pragma once

#include <string>
#include <vector>

#include "../../engine/array/array.hpp"

namespace tapegrad::detail {

/// gnuplot's commands for a PNG of the weights on its standard output.
/// weights: (H, T, S), none of them 0, with T queries and S keys; H / layers heads of each layer
std::string picture_script(const Array<double>& weights, std::size_t layers, const std::vector<std::string>& queries,
                           const std::vector<std::string>& keys, const std::string& title);

}  // namespace tapegrad::detail
