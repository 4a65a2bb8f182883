/// Where a run of training leaves what it learned, and how it is kept.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli.hpp"

namespace examples {

template <class Options> class Given;

/// Empty for what a run does not leave.
struct OutputOptions {
  std::string save, best;  ///< the model at the end, and with the lowest validation loss
  std::string checkpoint;  ///< the whole run
  std::size_t checkpoint_every = 0;
  std::string log, plot;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutputOptions, save, best, checkpoint, checkpoint_every, log, plot)

/// Describes all but --save to the command line, with --resume.
void add_output_options(CLI::App& app, Given<OutputOptions>& given, std::string& resume);

/// Refuses, with CLI::ValidationError, what was given and does nothing with these options; `validates` tells whether
/// the run measures itself.
void check_output_options(const CLI::App& app, const OutputOptions& options, bool validates);

/// Refuses, with CLI::ValidationError, names that are not UTF-8 for a run that is kept: its options stand in its file,
/// as JSON. `others` are options whose names are kept beside the outputs', with these.
void require_utf8_in_kept(const CLI::App& app, const OutputOptions& options,
                          std::vector<std::pair<std::string, std::string>> others);

}  // namespace examples
