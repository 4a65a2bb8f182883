/// What text_classifier shows of its results.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

/// A label, by its number, and how likely the model takes it to be.
struct Likely {
  std::int64_t label;
  float probability;
};

/// The three likeliest labels of a text, or all when there are fewer; the likeliest first.
using Ranking = std::vector<Likely>;

/// probabilities: (N, C) -> N rankings
std::vector<Ranking> rank(const tapegrad::Array<float>& probabilities);

/// The share of the predictions whose likeliest label is the true one. There is a prediction or more.
double accuracy(const std::vector<Ranking>& predictions, const std::vector<std::int64_t>& truth);

/// "76.5%" of 0.765
std::string percent(double share);

/// More labels than a table or a list for people can have.
inline constexpr std::size_t many_labels = 20;

/// Prints the share of right predictions, how often each label was taken for each, and the precision, the recall and
/// the F1 of each, as tables, or, of many labels, the pairs that were confused most often and the labels with the
/// lowest F1. There is a prediction or more.
void print_confusion(std::ostream& out, const std::vector<Ranking>& predictions, const std::vector<std::int64_t>& truth,
                     const std::vector<std::string>& labels);

/// Prints a line for each text with its likeliest labels. `about` stands beside the texts, or is empty.
void print_probabilities(std::ostream& out, const std::vector<std::string>& texts,
                         const std::vector<std::string>& about, const std::vector<Ranking>& predictions,
                         const std::vector<std::string>& labels);
