/// Naive Bayes: the classifier's baseline, and the first guess that its attention corrects.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "../common/vocabulary.hpp"
#include "pairs.hpp"

/// Multinomial naive Bayes with add-one smoothing. The features of a text are its tokens and its pairs of adjacent
/// tokens, each counted once.
class NaiveBayes {
 public:
  /// Counts the features of texts. Without texts, no label is likelier than another.
  NaiveBayes(const std::vector<examples::Ids>& texts, const std::vector<std::int64_t>& labels, std::size_t classes);

  /// Reads counts from a file's settings. Throws std::invalid_argument for others than those of settings().
  NaiveBayes(const nlohmann::json& settings, std::size_t classes);
  nlohmann::json settings() const;

  /// True if it has not counted any text.
  bool empty() const { return counts_.empty(); }

  /// log P(label) + the sum of log P(feature | label) over a text's known features, minus the mean over the labels.
  /// -> (texts, classes)
  tapegrad::Array<float> scores(const std::vector<examples::Ids>& texts) const;

  /// The scores of the counted texts. Each is computed without the text's own features: otherwise it would be better
  /// than the scores of new texts, and a model trained on it would trust it too much.
  tapegrad::Array<float> left_out_scores(const std::vector<examples::Ids>& texts,
                                         const std::vector<std::int64_t>& labels);

 private:
  using Counts = std::vector<double>;  // by label

  void count(const examples::Ids& ids, std::int64_t label, double times);
  Counts scores_of(const examples::Ids& ids) const;

  Counts texts_, features_;
  std::map<IdPair, Counts> counts_;  // of each feature; a token is a pair without a predecessor
};
