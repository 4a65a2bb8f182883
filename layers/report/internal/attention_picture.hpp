/// How a map of attention is drawn by gnuplot. For the library's own sources.
#pragma once

#include <string>
#include <vector>

#include "../../../engine/array/array.hpp"

namespace tapegrad::detail {

/// gnuplot's commands for a PNG of the weights on its standard output.
/// weights: (H, T, S), none of them 0, with T queries and S keys
std::string picture_script(const Array<double>& weights, const std::vector<std::string>& queries,
                           const std::vector<std::string>& keys, const std::string& title);

/// What gnuplot prints when it runs the script. Throws std::runtime_error with what it complains of, or with the name
/// of Debian's package when it is not installed.
std::string run_gnuplot(const char* operation, const std::string& script);

}  // namespace tapegrad::detail
