/// How a text is written.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "../common/cli.hpp"

/// As tapegrad::SampleOptions have it.
struct WritingOptions {
  std::string prompt;
  std::optional<std::size_t> length;
  double temperature = 0.8, top_p = 1;
  std::size_t top_k = 0;
};

/// What a program writes, in its help: what it is to begin, how --length is counted, and what is chosen.
struct WhatIsWritten {
  std::string prompt;  ///< of --prompt
  std::string length;  ///< of --length
  std::string unit;    ///< "character", of which others are an s more
};

/// Describes them to the command line.
void add_writing_options(CLI::App& app, WritingOptions& options, const std::string& group, const WhatIsWritten& what);
