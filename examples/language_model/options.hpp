/// What the user of language_model can ask for.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "../common/explain.hpp"
#include "../common/text.hpp"
#include "../common/training_options.hpp"
#include "model.hpp"

/// What the model learns: the words of a word list, the lines of a list, a running text, or the tutorial's random
/// sequences.
enum class Source { words, lines, text, random };

struct Options {
  std::string language = "english", data;
  examples::Encoding encoding = examples::Encoding::utf8;
  std::string save, load;
  std::string prompt;
  std::optional<std::size_t> length;  // in lines of a list or characters of a text
  double temperature = 0.8;
  examples::ExplainOptions explain;
  std::uint64_t seed = 0;

  Source source;
  ModelOptions model;
  examples::TrainingOptions training;
};

/// Describes the options to the command line. When it is parsed, `options` holds them, each at what the user gave or
/// at what suits the source; options that do not go together were refused with CLI::ValidationError.
void add_options(CLI::App& app, Options& options);
