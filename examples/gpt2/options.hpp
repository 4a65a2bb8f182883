/// What the user of gpt2 can ask for.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "../common/cli.hpp"
#include "../common/explain.hpp"
#include "../common/output_options.hpp"
#include "../common/step_page.hpp"
#include "../common/training_options.hpp"
#include "../gpt/writing_options.hpp"

/// What is trained, and of what it is made.
struct FineTuneOptions {
  std::string data;         ///< a text
  std::size_t context = 0;  ///< tokens of a piece of it; 0: as many as the model sees, at most 256
  double dropout = 0;
  std::size_t lora = 0;   ///< rank of the updates; 0: all weights are trained
  double lora_alpha = 0;  ///< 0: twice the rank
  bool recompute = false;
  std::uint64_t seed = 0;
  bool operator==(const FineTuneOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FineTuneOptions, data, context, dropout, lora, lora_alpha, recompute, seed)

/// A run of fine-tuning that is kept whole: its options, and a fingerprint of the model's configuration and the text's
/// tokens.
struct KeptFineTuning {
  FineTuneOptions fine_tune;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  bool merge = false;
  std::string fingerprint;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KeptFineTuning, fine_tune, training, outputs, merge, fingerprint)

/// The metadata's entry that tells such a run from another.
inline constexpr const char* kept_entry = "gpt2 --checkpoint";

/// Throws std::runtime_error, naming the file, when it is no run that was kept.
KeptFineTuning read_kept(const std::string& path);

struct Options {
  std::string folder, adapter;
  std::string score, tokens, train_tokenizer;  ///< files; empty: not asked for
  std::size_t vocabulary = 0;
  bool bf16 = false;
  FineTuneOptions fine_tune;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  bool merge = false;  ///< whether --save writes weights with their updates, and not these alone
  bool divide_state = false;
  std::string resume;
  WritingOptions writing;
  examples::ExplainOptions explain;
  examples::StepPageOptions page;
  bool writes = false;  ///< whether a text of the model's own is asked for, or nothing else is

  bool trains() const { return !fine_tune.data.empty(); }

  /// Whether what is saved of a training is the updates alone, an adapter.
  bool saves_updates() const { return fine_tune.lora > 0 && !merge; }
};

/// Describes the options to the command line. When it is parsed, `options` holds them. What does not go together was
/// refused with CLI::ValidationError, and a file to resume that is none with std::runtime_error.
void add_options(CLI::App& app, Options& options);
