/// Running gnuplot. For the library's own sources and its programs.
#pragma once

#include <string>

namespace tapegrad::detail {

/// What gnuplot prints when it runs the script. Throws std::runtime_error with what it complains of, or with the name
/// of Debian's package when it is not installed.
std::string run_gnuplot(const char* operation, const std::string& script);

}  // namespace tapegrad::detail
