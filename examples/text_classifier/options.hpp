/// What the user of text_classifier can ask for.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../common/explain.hpp"
#include "../common/training_options.hpp"
#include "../common/vocabulary.hpp"

struct ModelOptions {
  std::size_t width, heads;
  bool positions;          ///< whether to learn a vector for every position
  double init_std;         ///< spread of the vectors of tokens and positions before training
  double dropout;          ///< of these vectors
  std::size_t max_length;  ///< of a text, in tokens
};

/// What text_classifier learns from when nothing else is asked for.
enum class Source { word_lists, files, random };

struct Options {
  std::vector<std::string> languages{"english", "french", "german", "spanish", "italian", "dutch"};
  std::size_t words = 10'000;
  std::string data, train, test;
  examples::Encoding encoding = examples::Encoding::utf8;
  std::string save, load;
  std::vector<std::string> classify;
  examples::ExplainOptions explain;
  std::uint64_t seed = 0;

  Source source;
  examples::Unit unit;
  ModelOptions model;
  examples::TrainingOptions training;

  /// Whether there is anything to read, to learn from or to test with: a loaded model may just be used.
  bool needs_data() const { return load.empty() || !data.empty() || !test.empty(); }
};

/// Describes the options to the command line. When it is parsed, `options` holds them, each at what the user gave or
/// at what suits the source; options that do not go together were refused with CLI::ValidationError.
void add_options(CLI::App& app, Options& options);
