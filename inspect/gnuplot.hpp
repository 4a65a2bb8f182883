/// Pictures by gnuplot.
#pragma once

#include <filesystem>
#include <string>

namespace tapegrad {

/// Runs gnuplot on a script with a terminal and plots, and replaces the file by its output. Throws std::runtime_error
/// with gnuplot's message, or with the name of Debian's package if it is missing; the file is then unchanged.
void save_plot(const std::string& script, const std::filesystem::path& path, const char* operation = "save_plot");

}  // namespace tapegrad
