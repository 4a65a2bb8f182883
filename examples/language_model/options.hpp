/// What the user of language_model can ask for.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "../common/cli.hpp"
#include "../common/explain.hpp"
#include "../common/output_options.hpp"
#include "../common/step_page.hpp"
#include "../common/text.hpp"
#include "../common/training_options.hpp"
#include "../gpt/model.hpp"
#include "../gpt/writing_options.hpp"

namespace examples {
NLOHMANN_JSON_SERIALIZE_ENUM(Encoding, {{Encoding::utf8, "utf-8"}, {Encoding::latin1, "latin1"}})
}

/// What the model learns: the words of a word list, the lines of a list, a running text, or the tutorial's random
/// sequences.
enum class Source { words, lines, text, random };

NLOHMANN_JSON_SERIALIZE_ENUM(
    Source, {{Source::words, "words"}, {Source::lines, "lines"}, {Source::text, "text"}, {Source::random, "random"}})

/// What a run learns from.
struct RunOptions {
  std::string language = "english", data;  ///< data: empty when a language's words are learned
  bool lines = false;
  examples::Encoding encoding = examples::Encoding::utf8;
  std::uint64_t seed = 0;
  bool operator==(const RunOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunOptions, language, data, lines, encoding, seed)

/// What a run that is kept whole was made of: its options, and a fingerprint of the texts that it learns from.
struct KeptRun {
  RunOptions run;
  ModelOptions model;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  std::string fingerprint;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KeptRun, run, model, training, outputs, fingerprint)

/// The metadata's entry that tells a run from a model.
inline constexpr const char* run_entry = "language_model --checkpoint";

/// Throws std::runtime_error, naming the file, when it is no run that was kept.
KeptRun read_kept_run(const std::string& path);

struct Options {
  Source source = Source::words;
  RunOptions run;
  ModelOptions model;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  bool divide_state = false;  ///< among the ranks
  bool recompute = false;     ///< what is in the blocks, in the sweep
  std::string load, resume;
  WritingOptions writing;
  examples::ExplainOptions explain;
  examples::StepPageOptions page;
};

/// Describes the options to the command line. When it is parsed, `options` holds them, each at what the user gave, at
/// what the run that is resumed was made of, or at what suits the source. Options that do not go together were refused
/// with CLI::ValidationError, and a file to resume that is none with std::runtime_error.
void add_options(CLI::App& app, Options& options);
