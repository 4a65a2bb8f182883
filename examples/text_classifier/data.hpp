/// The texts that text_classifier learns from and tests itself with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../common/text.hpp"
#include "options.hpp"

/// A text and what it is.
struct Example {
  std::string label;
  examples::Text text;
  std::string place;  // "FILE:12"; empty for a word of a word list
};

struct Data {
  std::vector<Example> train, test;
};

/// Reads what the options name, for a cross-validation all of it to learn from, and says on standard output how much
/// that is. All letters become small ones. Throws std::runtime_error, naming the file and the line, for what cannot be
/// used.
Data read_data(const Options& options);

/// The labels that the examples have, sorted. Throws std::runtime_error when there are not two.
std::vector<std::string> labels_of(const std::vector<Example>& examples);

/// The numbers of the examples' labels. Throws std::runtime_error, naming the place, for one that is not among them.
std::vector<std::int64_t> label_ids(const std::vector<Example>& examples, const std::vector<std::string>& labels);
