/// Pictures by gnuplot.
#pragma once

#include <filesystem>
#include <string>

namespace tapegrad {

/// Runs gnuplot on a script that sets a terminal and plots, and puts the picture in the place of the file. Throws
/// std::runtime_error, naming the operation, with what gnuplot complains of, or with the name of Debian's package when
/// it is not installed; the file then is as it was.
void save_plot(const std::string& script, const std::filesystem::path& path, const char* operation = "save_plot");

}  // namespace tapegrad
