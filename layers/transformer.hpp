/// The block that Transformers are stacked from (Vaswani et al. 2017, arXiv:1706.03762).
#pragma once

#include <cstddef>
#include <utility>

#include "../engine/array/mask.hpp"
#include "attention.hpp"
#include "dropout.hpp"
#include "key_value_cache.hpp"
#include "layer_norm.hpp"
#include "linear.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// The function between a feed-forward's two layers.
enum class Activation { relu, gelu, gelu_tanh, silu };

/// What may be set beside the widths.
struct FeedForwardOptions {
  Activation activation = Activation::gelu;  ///< between the layers
  bool bias = true;                          ///< of both layers
  Generator* generator = nullptr;            ///< of the first weights and biases; null: the default one
};

/// fc2(activation(fc1(x))), for each position alone.
template <class T = float> struct FeedForward {
  Linear<T> fc1;          ///< width -> hidden
  Linear<T> fc2;          ///< hidden -> width
  Activation activation;  ///< between them
  TAPEGRAD_FIELDS(fc1, fc2)

  /// Throws std::invalid_argument for sizes that are not positive.
  FeedForward(std::size_t width, std::size_t hidden, const FeedForwardOptions& options = {});

  /// x: (..., width) -> the same
  Tensor<T> operator()(const Tensor<T>& x) const;
};

/// Where a block has its LayerNorms.
enum class NormPlacement {
  first,  ///< before the attention and the feed-forward, as in GPT-2: x + f(norm(x))
  last,   ///< after the sums, as in the first Transformer: norm(x + f(x))
  none    ///< nowhere: they have no parameters then
};

/// What may be set beside the width and the number of heads.
struct TransformerBlockOptions {
  std::size_t feed_forward_width = 0;  ///< of the feed-forward's inside; 0: four times the block's
  double dropout = 0;            ///< probability, in [0, 1), of dropping what the attention and the feed-forward give
  double attention_dropout = 0;  ///< of dropping an attention weight
  Activation activation = Activation::gelu;   ///< of the feed-forward
  bool bias = true;                           ///< of the linear layers and the LayerNorms
  NormPlacement norm = NormPlacement::first;  ///< where the LayerNorms are
  Generator* generator = nullptr;             ///< of the first weights and biases; null: the default one
};

/// x + attention(norm1(x)), then x + feed_forward(norm2(x)), with dropout of what is added.
template <class T = float> struct TransformerBlock {
  LayerNorm<T> norm1;               ///< of the attention
  MultiHeadAttention<T> attention;  ///< width -> width
  LayerNorm<T> norm2;               ///< of the feed-forward
  FeedForward<T> feed_forward;      ///< width -> width
  Dropout dropout;                  ///< of what is added
  NormPlacement norm;               ///< where the LayerNorms are
  TAPEGRAD_FIELDS(norm1, attention, norm2, feed_forward, dropout)

  /// Throws std::invalid_argument for sizes that are not positive, a width that num_heads does not divide, and a
  /// dropout outside [0, 1).
  TransformerBlock(std::size_t width, std::size_t num_heads, const TransformerBlockOptions& options = {});

  /// x: (B, T, width) -> the same
  Tensor<T> operator()(const Tensor<T>& x, const AttentionMask& mask = {}) const;

  /// The same for tokens that follow those in the cache, which takes them in. For inference; throws as
  /// KeyValueCache::attend does.
  Tensor<T> operator()(const Tensor<T>& x, KeyValueCache<T>& cache,
                       const AttentionMask& mask = AttentionMask::causal()) const;

  /// The output, and the attention's weights as MultiHeadAttention::with_weights gives them.
  /// -> (B, T, width), (B, num_heads, T, T)
  std::pair<Tensor<T>, Tensor<T>> with_weights(const Tensor<T>& x, const AttentionMask& mask = {}) const;

 private:
  template <class Attend> Tensor<T> apply(const Tensor<T>& x, Attend attend) const;
};

}  // namespace tapegrad
