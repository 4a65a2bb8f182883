/// Command-line options of language_model.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "../common/cli.hpp"
#include "../common/explain.hpp"
#include "../common/output_options.hpp"
#include "../common/settings.hpp"
#include "../common/step_page.hpp"
#include "../common/text.hpp"
#include "../common/training_options.hpp"
#include "../gpt/model.hpp"
#include "../gpt/writing_options.hpp"

/// The kind of training data: words of a word list, lines of a file, running text, or the tutorial's random ids.
enum class Source { words, lines, text, random };

NLOHMANN_JSON_SERIALIZE_ENUM(
    Source, {{Source::words, "words"}, {Source::lines, "lines"}, {Source::text, "text"}, {Source::random, "random"}})

/// The data and seed of a run.
struct RunOptions {
  std::string language = "english", data;  ///< data: a file, or empty to use the language's word list
  bool lines = false;
  examples::Encoding encoding = examples::Encoding::utf8;
  std::uint64_t seed = 0;
  bool operator==(const RunOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunOptions, language, data, lines, encoding, seed)

/// The options of a run in its checkpoint, with the fingerprint of its data.
struct SavedRun {
  static constexpr const char* entry = "language_model --checkpoint";  ///< in the metadata
  RunOptions run;
  ModelOptions model;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  std::string fingerprint;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SavedRun, run, model, training, outputs, fingerprint)

struct LanguageModelOptions {
  Source source = Source::words;
  RunOptions run;
  ModelOptions model;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  std::size_t depth = 0;      ///< sets the default sizes and rates; 0: those of the source
  double minutes = 0;         ///< time for training, which sets the number of steps; 0: as many as given
  bool divide_state = false;  ///< shard the optimizer's state over the ranks
  bool recompute = false;     ///< recompute blocks' activations in the backward pass
  std::string load, resume;
  WritingOptions writing;
  examples::ExplainOptions explain;
  examples::StepPageOptions page;
};

/// Adds the options to the command line. Parsing fills `options` with the given values, and others from the resumed run
/// or the source's defaults. Parsing throws CLI::ValidationError for incompatible options and std::runtime_error for an
/// invalid file to resume.
void add_options(CLI::App& app, LanguageModelOptions& options);
