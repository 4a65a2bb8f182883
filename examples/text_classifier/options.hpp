/// What the user of text_classifier can ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../common/cli.hpp"
#include "../common/explain.hpp"
#include "../common/step_page.hpp"
#include "../common/training_options.hpp"
#include "../common/vocabulary.hpp"
#include "model.hpp"

/// What text_classifier learns from when nothing else is asked for.
enum class Source { word_lists, files, random };

struct Options {
  std::vector<std::string> languages{"english", "french", "german", "spanish", "italian", "dutch"};
  std::size_t words = 10'000;
  std::string data, train, test;
  examples::Encoding encoding = examples::Encoding::utf8;
  double validation = 0;      ///< share of the texts to learn from that is kept to tell the best weights; 0: none
  std::size_t folds = 0;      ///< of a cross-validation; 0: none
  bool divide_state = false;  ///< of the optimizer, among the ranks
  std::string save, load;
  std::vector<std::string> classify;
  examples::ExplainOptions explain;
  examples::StepPageOptions page;
  std::uint64_t seed = 0;

  Source source;
  examples::Unit unit;
  ModelOptions model;
  examples::TrainingOptions training;  ///< 0 steps: as many as suit the texts, see training_with()

  /// The training options for so many texts to learn from.
  examples::TrainingOptions training_with(std::size_t texts) const;

  /// Whether there is anything to read, to learn from or to test with: a loaded model may just be used.
  bool needs_data() const { return load.empty() || !data.empty() || !test.empty(); }
};

/// Describes the options to the command line. When it is parsed, `options` holds them, each at what the user gave or
/// at what suits the source; options that do not go together were refused with CLI::ValidationError.
void add_options(CLI::App& app, Options& options);
