/// Command-line options of gpt2.
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

/// Options of fine-tuning.
struct FineTuneOptions {
  std::string data;         ///< text file
  std::size_t context = 0;  ///< tokens per training sequence; 0: the model's context, at most 256
  double dropout = 0;
  std::size_t lora = 0;   ///< rank of the updates; 0: train all weights
  double lora_alpha = 0;  ///< 0: twice the rank
  bool recompute = false;
  std::uint64_t seed = 0;
  bool operator==(const FineTuneOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FineTuneOptions, data, context, dropout, lora, lora_alpha, recompute, seed)

/// The options of a fine-tuning run in its checkpoint, with a fingerprint of the model's configuration and the text's
/// tokens.
struct SavedFineTuning {
  static constexpr const char* entry = "gpt2 --checkpoint";  ///< in the metadata
  FineTuneOptions fine_tune;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  bool merge = false;
  std::string fingerprint;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SavedFineTuning, fine_tune, training, outputs, merge, fingerprint)

struct Gpt2Options {
  std::string folder, adapter;
  std::string score, tokens, train_tokenizer;  ///< files; empty if not requested
  std::size_t vocabulary = 0;
  bool bf16 = false;
  FineTuneOptions fine_tune;
  examples::TrainingOptions training;
  examples::OutputOptions outputs;
  bool merge = false;  ///< true if --save writes merged weights instead of the updates alone
  bool divide_state = false;
  std::string resume;
  WritingOptions writing;
  examples::ExplainOptions explain;
  examples::StepPageOptions page;
  bool writes = false;  ///< true if generated text, or no other output, is requested

  bool trains() const { return !fine_tune.data.empty(); }

  /// True if training saves only the updates, as an adapter.
  bool saves_updates() const { return fine_tune.lora > 0 && !merge; }
};

/// Adds the options to the command line. Parsing fills `options`. It throws CLI::ValidationError for incompatible
/// options and std::runtime_error for an invalid file to resume.
void add_options(CLI::App& app, Gpt2Options& options);
