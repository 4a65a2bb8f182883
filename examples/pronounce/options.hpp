/// Command-line options of pronounce.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../common/cli.hpp"
#include "../common/explain.hpp"
#include "../common/output_options.hpp"
#include "../common/settings.hpp"
#include "../common/step_page.hpp"
#include "../common/training_options.hpp"
#include "../common/vocabulary.hpp"
#include "model.hpp"

namespace pronounce {

/// The data and seed of a run.
struct RunOptions {
  std::string data;  ///< file of pairs; empty: the pronouncing dictionary
  examples::Unit source = examples::Unit::characters, target = examples::Unit::characters;  ///< tokens of --data
  examples::Encoding encoding = examples::Encoding::utf8;                                   ///< of --data
  std::uint64_t seed = 0;
  bool operator==(const RunOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunOptions, data, source, target, encoding, seed)

/// The options of a run in its checkpoint, with the fingerprint of its data.
struct SavedRun {
  static constexpr const char* entry = "pronounce --checkpoint";  ///< in the metadata
  RunOptions run;
  ModelOptions model;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  std::string fingerprint;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SavedRun, run, model, training, outputs, fingerprint)

struct PronounceOptions {
  RunOptions run;
  ModelOptions model;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  bool divide_state = false;  ///< shard the optimizer's state over the ranks
  std::string load, resume;
  std::size_t beams = 1;
  std::vector<std::string> words;  ///< of --pronounce
  examples::ExplainOptions explain;
  examples::StepPageOptions page;
};

/// Adds the options to the command line. Parsing fills `options`, and throws CLI::ValidationError for incompatible ones
/// and std::runtime_error for an invalid file to resume.
void add_options(CLI::App& app, PronounceOptions& options);

}  // namespace pronounce
