/// The model of text_classifier.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <optional>
#include <utility>

#include "pairs.hpp"

struct ModelOptions {
  std::size_t width, heads;
  std::size_t min_count = 2;  ///< how often the texts to learn from must have a token that gets a vector
  bool positions = false;     ///< whether to learn a vector for every position
  bool pairs = false;         ///< whether to learn a vector for every two tokens side by side that are there twice
  bool residual = false;      ///< whether a token keeps its vector and adds to it what it finds in the others
  double init_std = 1;        ///< spread of the vectors of tokens, positions and pairs before training
  double token_dropout = 0;   ///< of the vectors of tokens and pairs, each as a whole
  double dropout = 0;         ///< of the numbers in their sum
  std::size_t max_length;     ///< of a text, in tokens
};

/// The classifier: every token looks at every other, and their mean says what the text is.
struct Model {
  tapegrad::Embedding<> embedding;
  std::optional<PairEmbedding> pairs;              // a vector for two tokens side by side, when asked for
  std::optional<tapegrad::Embedding<>> positions;  // one for each place in the text, when asked for
  tapegrad::Dropout token_dropout, dropout;
  tapegrad::MultiHeadAttention<> attention;
  bool residual;
  tapegrad::Linear<> head;
  TAPEGRAD_FIELDS(embedding, pairs, positions, token_dropout, dropout, attention, head)
  TAPEGRAD_SETTINGS(residual)

  /// `known_pairs` are those that get vectors; there may be none.
  Model(std::size_t vocabulary, const IdPairs& known_pairs, std::size_t classes, const ModelOptions& options);

  /// ids: (B, T), keep: (B, T), true for real tokens, false for padding -> logits: (B, classes)
  tapegrad::Tensor<float> operator()(const tapegrad::IntArray& ids, const tapegrad::BoolArray& keep) const;

  /// The same with the weights of the attention. -> (B, classes), (B, heads, T, T)
  std::pair<tapegrad::Tensor<float>, tapegrad::Tensor<float>> with_weights(const tapegrad::IntArray& ids,
                                                                           const tapegrad::BoolArray& keep) const;

 private:
  tapegrad::Tensor<float> vectors(const tapegrad::IntArray& ids) const;
  tapegrad::Tensor<float> decide(const tapegrad::Tensor<float>& x, const tapegrad::Tensor<float>& found,
                                 const tapegrad::BoolArray& keep) const;
};
