/// The model of text_classifier.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <optional>
#include <utility>

#include "naive_bayes.hpp"
#include "pairs.hpp"

struct ClassifierOptions {
  std::size_t width, heads;
  std::size_t min_count = 2;  ///< minimum occurrences in the training texts of a token with its own vector
  bool positions = false;     ///< true for learned vectors of positions
  bool pairs = false;         ///< true for learned vectors of adjacent token pairs that occur at least twice
  bool prior = false;         ///< true to start from naive Bayes: each token and pair adds a learned score to each label
  bool residual = false;      ///< true to add the attention's output to its input
  double init_std = 1;        ///< initial standard deviation of the vectors of tokens, positions and pairs
  double token_dropout = 0;   ///< of whole vectors of tokens and pairs
  double dropout = 0;         ///< of elements of their sum
  std::size_t max_length;     ///< of a text, in tokens
};

/// A score of each token and pair for each label, which start as naive Bayes' log ratios.
struct Prior {
  tapegrad::Embedding<> tokens;
  PairEmbedding pairs;
  TAPEGRAD_FIELDS(tokens, pairs)

  Prior(std::size_t vocabulary, const IdPairs& known_pairs, std::size_t classes);
  void start_from(const NaiveBayes& bayes);

  /// ids: (B, T) -> (B, T, classes)
  tapegrad::Tensor<float> operator()(const tapegrad::IntArray& ids) const;
};

/// The classifier: self-attention, the mean over the tokens, and a linear head; optionally with a prior.
struct Model {
  tapegrad::Embedding<> embedding;
  std::optional<PairEmbedding> pairs;              // of adjacent tokens, optional
  std::optional<tapegrad::Embedding<>> positions;  // optional
  tapegrad::Dropout token_dropout, dropout;
  tapegrad::MultiHeadAttention<> attention;
  bool residual;
  tapegrad::Linear<> head;
  std::optional<Prior> prior;
  TAPEGRAD_FIELDS(embedding, pairs, positions, token_dropout, dropout, attention, head, prior)
  TAPEGRAD_SETTINGS(residual)

  /// known_pairs: the token pairs with vectors; may be empty.
  Model(std::size_t vocabulary, const IdPairs& known_pairs, std::size_t classes, const ClassifierOptions& options);

  /// ids: (B, T), keep: (B, T), true for real tokens, false for padding -> logits: (B, classes)
  tapegrad::Tensor<float> operator()(const tapegrad::IntArray& ids, const tapegrad::BoolArray& keep) const;

  /// The logits and the attention weights. -> (B, classes), (B, heads, T, T)
  std::pair<tapegrad::Tensor<float>, tapegrad::Tensor<float>> with_weights(const tapegrad::IntArray& ids,
                                                                           const tapegrad::BoolArray& keep) const;

 private:
  tapegrad::Tensor<float> vectors(const tapegrad::IntArray& ids) const;
  tapegrad::Tensor<float> decide(const tapegrad::IntArray& ids, const tapegrad::Tensor<float>& x,
                                 const tapegrad::Tensor<float>& found, const tapegrad::BoolArray& keep) const;
};
