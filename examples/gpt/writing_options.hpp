/// Command-line options for generating text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "../common/cli.hpp"

/// The prompt, the length, and the options of tapegrad::SampleOptions.
struct WritingOptions {
  std::string prompt;
  std::optional<std::size_t> length;
  double temperature = 0.8, top_p = 1;
  std::size_t top_k = 0;
};

/// Parts of the options' help that depend on the program.
struct WritingHelp {
  std::string prompt;  ///< help of --prompt
  std::string length;  ///< help of --length
  std::string unit;    ///< unit in the singular: "character"
};

/// Adds the options to the command line.
void add_writing_options(CLI::App& app, WritingOptions& options, const std::string& group, const WritingHelp& what);
