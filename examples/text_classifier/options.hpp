/// Command-line options of text_classifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../common/cli.hpp"
#include "../common/explain.hpp"
#include "../common/step_page.hpp"
#include "../common/training_options.hpp"
#include "../common/vocabulary.hpp"
#include "model.hpp"

/// The kind of training data; word lists by default.
enum class DataKind { word_lists, files, random };

struct Options {
  std::vector<std::string> languages{"english", "french", "german", "spanish", "italian", "dutch"};
  std::size_t words = 10'000;
  std::string data, train, test;
  examples::Encoding encoding = examples::Encoding::utf8;
  double validation = 0;      ///< share of the training texts used to select the best weights; 0: none
  std::size_t folds = 0;      ///< number of cross-validation folds; 0: none
  bool divide_state = false;  ///< shard the optimizer's state over the ranks
  std::string save, load;
  std::vector<std::string> classify;
  examples::ExplainOptions explain;
  examples::StepPageOptions page;
  std::uint64_t seed = 0;

  DataKind source;
  examples::Unit unit;
  ClassifierOptions model;
  examples::TrainingOptions training;  ///< 0 steps: depends on the number of texts, see training_with()

  /// The training options for this number of training texts.
  examples::TrainingOptions training_with(std::size_t texts) const;

  /// True if training or test data must be read. A loaded model needs none.
  bool needs_data() const { return load.empty() || !data.empty() || !test.empty(); }
};

/// Adds the options to the command line. Parsing fills `options` with the given values and the source's defaults.
/// Parsing throws CLI::ValidationError for incompatible options.
void add_options(CLI::App& app, Options& options);
