/// Naive Bayes over tokens and adjacent pairs: the baseline of the classifier, and its first guess.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "../common/vocabulary.hpp"
#include "pairs.hpp"

/// A multinomial naive Bayes classifier with add-one smoothing: log P(label) + the sum of log P(feature | label) over the
/// tokens and the adjacent pairs of tokens of a text.
class NaiveBayes {
 public:
  NaiveBayes(const std::vector<examples::Ids>& texts, const std::vector<std::int64_t>& labels, std::size_t classes);

  /// The likeliest label of a text. Features that never occurred in training do not count.
  std::int64_t predict(const examples::Ids& ids) const;

  /// log P(feature | label) minus its mean over the labels, of a token or a pair. -> (classes), zeros if unknown
  std::vector<float> ratios(std::int64_t token) const;
  std::vector<float> ratios(const IdPair& pair) const;

 private:
  std::vector<double> log_prior_;                  // of each label
  std::map<IdPair, std::vector<float>> features_;  // the log probabilities; a token is a pair with kNone
};
