/// A classifier: a model with its tokenizer and labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../common/batches.hpp"
#include "../common/vocabulary.hpp"
#include "data.hpp"
#include "model.hpp"
#include "naive_bayes.hpp"
#include "options.hpp"
#include "report.hpp"

/// Encoded texts with labels.
struct Sequences {
  std::vector<examples::Ids> ids;
  std::vector<std::int64_t> labels;
  tapegrad::Array<float> prior;  ///< naive Bayes scores, (N, classes)

  /// The labels of the chosen texts. -> (B)
  tapegrad::IntArray labels_of(std::span<const std::size_t> chosen) const;

  /// The naive Bayes scores of the chosen texts. -> (B, classes)
  tapegrad::Array<float> prior_of(std::span<const std::size_t> chosen) const;
};

/// Calls use(indices, padded batch) for batches of all texts, sorted by length to reduce padding.
void in_batches(const std::vector<examples::Ids>& texts,
                const std::function<void(std::span<const std::size_t>, const examples::Padded&)>& use);

struct Classifier {
  examples::Tokenizer tokenizer;
  IdPairs pairs;
  std::vector<std::string> labels;
  ClassifierOptions options;
  NaiveBayes bayes;  // without texts if loaded from a file without its counts
  Model model{tokenizer.vocabulary.size(), pairs, labels.size(), options};

  /// Encodes texts and labels. Throws std::runtime_error, naming the place, for an unknown label.
  Sequences encode(const std::vector<Example>& data) const;

  /// The accuracy of naive Bayes alone, if it has counted texts.
  std::optional<double> baseline(const Sequences& sequences) const;

  /// Predicts the likeliest labels of each text. Leaves the model in evaluation mode.
  std::vector<Ranking> predict(const std::vector<examples::Ids>& texts);
};

/// Makes an untrained classifier with the tokens, and optionally the token pairs, of these texts.
Classifier make_classifier(const std::vector<Example>& data, const std::vector<std::string>& labels,
                           const Options& options);

/// Saves a classifier and prints the file's name; loads one. Both throw std::runtime_error, naming the file.
void save(const Classifier& classifier, const std::string& path);
Classifier load_classifier(const std::string& path);
