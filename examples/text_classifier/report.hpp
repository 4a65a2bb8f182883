/// Prints text_classifier's results.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

/// A label's index and its predicted probability.
struct Likely {
  std::int64_t label;
  float probability;
};

/// The three likeliest labels of a text, or fewer if there are fewer labels; likeliest first.
using Ranking = std::vector<Likely>;

/// probabilities: (N, C) -> N rankings
std::vector<Ranking> rank(const tapegrad::Array<float>& probabilities);

/// The fraction of correct predictions. Requires at least one.
double accuracy(const std::vector<Ranking>& predictions, const std::vector<std::int64_t>& truth);

/// The maximum number of labels in a table or list.
inline constexpr std::size_t many_labels = 20;

/// ", naive Bayes 78.9%", or nothing without a baseline.
std::string beside(const std::optional<double>& baseline);

/// Prints the accuracy, the confusion matrix, and each label's precision, recall and F1. With more than many_labels
/// labels, prints the most confused pairs and the labels with the lowest F1 instead. Requires at least one prediction.
void print_confusion(std::ostream& out, const std::vector<Ranking>& predictions, const std::vector<std::int64_t>& truth,
                     const std::vector<std::string>& labels, const std::optional<double>& baseline);

/// Prints each text with its likeliest labels, one per line. `about` holds a remark for each text, or is empty.
void print_probabilities(std::ostream& out, const std::vector<std::string>& texts,
                         const std::vector<std::string>& about, const std::vector<Ranking>& predictions,
                         const std::vector<std::string>& labels);
