/// The language model: which character comes next?
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include <cstddef>
#include <optional>
#include <utility>

inline constexpr std::size_t longest_context = 1'000'000;

struct ModelOptions {
  std::size_t width, heads;
  bool positions;       ///< whether to learn a vector for every position
  std::size_t context;  ///< the longest sequence, in characters
};

/// Every character looks at those before it, and from what it sees predicts the next.
template <class T = float> struct LanguageModel {
  tapegrad::Embedding<T> embedding;
  std::optional<tapegrad::Embedding<T>> positions;
  tapegrad::MultiHeadAttention<T> attention;
  tapegrad::Linear<T> head;
  TAPEGRAD_FIELDS(embedding, positions, attention, head)

  LanguageModel(std::size_t vocabulary, const ModelOptions& options)
      : embedding(vocabulary, options.width), attention(options.width, options.heads), head(options.width, vocabulary) {
    if (options.positions) positions.emplace(options.context, options.width);
  }

  /// ids: (B, T) -> logits: (B, T, vocabulary), of the id that follows each
  tapegrad::Tensor<T> operator()(const tapegrad::IntArray& ids) const {
    return head(attention(vectors(ids), tapegrad::AttentionMask::causal()));
  }

  /// The same with the weights of the attention. -> (B, T, vocabulary), (B, heads, T, T)
  std::pair<tapegrad::Tensor<T>, tapegrad::Tensor<T>> with_weights(const tapegrad::IntArray& ids) const {
    const auto x = vectors(ids);
    const auto [y, weights] = attention.with_weights(x, x, x, tapegrad::AttentionMask::causal());
    return {head(y), weights};
  }

  /// (B, T) -> (B, T, D)
  tapegrad::Tensor<T> vectors(const tapegrad::IntArray& ids) const {
    auto x = embedding(ids);
    if (positions) x = x + (*positions)(xt::arange<std::int64_t>(ids.shape()[1]));  // (T, D) goes to each sequence
    return x;
  }
};
