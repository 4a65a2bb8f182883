/// A model with what it takes to use it on texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "../common/batches.hpp"
#include "../common/vocabulary.hpp"
#include "data.hpp"
#include "model.hpp"
#include "options.hpp"
#include "report.hpp"

/// Texts as the model takes them.
struct Sequences {
  std::vector<examples::Ids> ids;
  std::vector<std::int64_t> labels;

  /// The labels of the chosen. -> (B)
  tapegrad::IntArray labels_of(std::span<const std::size_t> chosen) const;
};

/// Calls `use` with the numbers of some texts and with these texts, until all have had their turn. Texts of similar
/// lengths come together, so that little is padding.
void in_batches(const std::vector<examples::Ids>& texts,
                const std::function<void(std::span<const std::size_t>, const examples::Padded&)>& use);

struct Classifier {
  examples::Tokenizer tokenizer;
  IdPairs pairs;
  std::vector<std::string> labels;
  ModelOptions options;
  Model model{tokenizer.vocabulary.size(), pairs, labels.size(), options};

  /// Throws std::runtime_error, naming the place, for a label that is not among the classifier's.
  Sequences encode(const std::vector<Example>& data) const;

  /// What the model takes each text for. Leaves the model in evaluation.
  std::vector<Ranking> predict(const std::vector<examples::Ids>& texts);
};

/// An untrained classifier that knows the tokens, and the pairs if they are asked for, of these texts.
Classifier make_classifier(const std::vector<Example>& data, const std::vector<std::string>& labels,
                           const Options& options);

/// Saves the classifier, and says so on standard output; loads one. Both throw std::runtime_error naming the file.
void save(const Classifier& classifier, const std::string& path);
Classifier load(const std::string& path);
