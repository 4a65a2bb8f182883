/// What text_classifier shows of its results.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <iosfwd>
#include <string>
#include <vector>

/// How often each label was taken for each.
/// probabilities: (N, C), truth: N labels -> (C, C): rows are true labels, columns predicted ones
tapegrad::IntArray confusion(const tapegrad::Array<float>& probabilities, const std::vector<std::int64_t>& truth);

/// Prints the share of right predictions, then the table.
void print_confusion(std::ostream& out, const tapegrad::IntArray& counts, const std::vector<std::string>& labels);

/// Prints a line for each text with its likeliest labels. `about` stands beside the texts, or is empty.
/// probabilities: (N, C)
void print_probabilities(std::ostream& out, const std::vector<std::string>& texts,
                         const std::vector<std::string>& about, const tapegrad::Array<float>& probabilities,
                         const std::vector<std::string>& labels);
