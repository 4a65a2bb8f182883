/// Options for a training run's output files.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli.hpp"
#include "explain.hpp"
#include "step_page.hpp"

namespace examples {

template <class Options> class Given;

/// File names; empty for files not requested.
struct OutputOptions {
  std::string save{}, best{};  ///< the final model, and the one with the lowest validation loss
  std::string checkpoint{};    ///< the whole run
  std::size_t checkpoint_every = 0;
  std::string log{}, plot{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutputOptions, save, best, checkpoint, checkpoint_every, log, plot)

/// Adds all of these except --save to the command line, and --resume.
void add_output_options(CLI::App& app, Given<OutputOptions>& given, std::string& resume);

/// Throws CLI::ValidationError if a given option has no effect in combination with the others. `validates`: true if
/// the run computes validation losses.
void check_output_options(const CLI::App& app, const OutputOptions& options, bool validates);

/// Throws CLI::ValidationError for file names that are not UTF-8 if the run writes a checkpoint, which stores options
/// as JSON. `others`: further options and their stored values to check.
void require_utf8_in_saved(const CLI::App& app, const OutputOptions& options,
                           std::vector<std::pair<std::string, std::string>> others);

/// Calls program.hpp's prepare_outputs for a run's output files. `resume`: the checkpoint to resume, or empty.
void prepare_outputs(const OutputOptions& options, const StepPageOptions& page, const ExplainOptions& explain,
                     const std::string& resume, std::vector<std::string> inputs);

/// For ranks other than the first: clears the output files except the checkpoint, a collective operation.
void write_nothing(OutputOptions& options, StepPageOptions& page);

}  // namespace examples
