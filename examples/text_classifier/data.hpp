/// Training and test data of text_classifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../common/text.hpp"
#include "options.hpp"

/// A labeled text.
struct Example {
  std::string label;
  examples::Text text;
  std::string place;  // "FILE:12"; empty for a word of a word list
};

struct Data {
  std::vector<Example> train, test;
};

/// Reads the data named in the options, converts it to lowercase and prints its size. For cross-validation all data
/// goes to `train`. Throws std::runtime_error, naming the file and the line, for unusable data.
Data read_data(const Options& options);

/// The examples' distinct labels, sorted. Throws std::runtime_error if there are fewer than two.
std::vector<std::string> labels_of(const std::vector<Example>& examples);

/// The indices of the examples' labels in `labels`. Throws std::runtime_error, naming the place, for an unknown label.
std::vector<std::int64_t> label_ids(const std::vector<Example>& examples, const std::vector<std::string>& labels);
