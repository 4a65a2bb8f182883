/// The model of text_classifier.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <optional>
#include <utility>

#include "pairs.hpp"

struct ClassifierOptions {
  std::size_t width, heads;
  std::size_t min_count = 2;  ///< minimum occurrences in the training texts of a token with its own vector
  bool positions = false;     ///< true for learned vectors of positions
  bool pairs = false;         ///< true for learned vectors of adjacent token pairs that occur at least twice
  bool prior = false;         ///< true to add the scores of naive Bayes, with a learned weight
  bool residual = false;      ///< true to add the attention's output to its input
  double init_std = 1;        ///< initial standard deviation of the vectors of tokens, positions and pairs
  double token_dropout = 0;   ///< of whole vectors of tokens and pairs
  double dropout = 0;         ///< of elements of their sum
  std::size_t max_length;     ///< of a text, in tokens
};

/// The classifier: self-attention, the mean over the tokens, and a linear head. With a prior it learns what to add
/// to the scores of naive Bayes.
struct Model {
  tapegrad::Embedding<> embedding;
  std::optional<PairEmbedding> pairs;              // of adjacent tokens, optional
  std::optional<tapegrad::Embedding<>> positions;  // optional
  tapegrad::Dropout token_dropout, dropout;
  tapegrad::MultiHeadAttention<> attention;
  bool residual;
  tapegrad::Linear<> head;
  tapegrad::Parameter<float> prior_weight;  // (1), of the scores of naive Bayes; undefined without a prior
  TAPEGRAD_FIELDS(embedding, pairs, positions, token_dropout, dropout, attention, head, prior_weight)
  TAPEGRAD_SETTINGS(residual)

  /// known_pairs: the token pairs with vectors; may be empty.
  Model(std::size_t vocabulary, const IdPairs& known_pairs, std::size_t classes, const ClassifierOptions& options);

  /// ids: (B, T), keep: (B, T), true for real tokens, false for padding, prior: (B, classes) -> logits: (B, classes)
  tapegrad::Tensor<float> operator()(const tapegrad::IntArray& ids, const tapegrad::BoolArray& keep,
                                     const tapegrad::Array<float>& prior) const;

  /// The logits and the attention weights. -> (B, classes), (B, heads, T, T)
  std::pair<tapegrad::Tensor<float>, tapegrad::Tensor<float>> with_weights(const tapegrad::IntArray& ids,
                                                                           const tapegrad::BoolArray& keep,
                                                                           const tapegrad::Array<float>& prior) const;

 private:
  tapegrad::Tensor<float> vectors(const tapegrad::IntArray& ids) const;
  tapegrad::Tensor<float> decide(const tapegrad::Tensor<float>& x, const tapegrad::Tensor<float>& found,
                                 const tapegrad::BoolArray& keep, const tapegrad::Array<float>& prior) const;
};
