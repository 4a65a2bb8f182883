/// The block that Transformers are stacked from (Vaswani et al. 2017, arXiv:1706.03762).
#pragma once

#include <cstddef>
#include <optional>
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
enum class Activation {
  relu,
  gelu,
  gelu_tanh,
  silu,
  swiglu  ///< silu of a third layer, the gate, which multiplies what the first one gives (Shazeer 2020,
          ///< arXiv:2002.05202)
};

/// What may be set beside the widths.
struct FeedForwardOptions {
  Activation activation = Activation::gelu;  ///< between the layers
  bool bias = true;                          ///< of all layers
  Generator* generator = nullptr;            ///< of the first weights and biases; null: the default one
};

/// fc2(activation(fc1(x))), for each position alone; with a gate, fc2(silu(gate(x)) * fc1(x)).
template <class T = float> struct FeedForward {
  std::optional<Linear<T>> gate;  ///< width -> hidden, of swiglu alone
  Linear<T> fc1;                  ///< width -> hidden
  Linear<T> fc2;                  ///< hidden -> width
  Activation activation;          ///< between them
  TAPEGRAD_FIELDS(gate, fc1, fc2)

  /// Throws std::invalid_argument for sizes that are not positive.
  FeedForward(std::size_t width, std::size_t hidden, const FeedForwardOptions& options = {});

  /// x: (..., width) -> the same
  Tensor<T> operator()(const Tensor<T>& x) const;
};

/// What a block's norms divide by.
enum class Normalization {
  layer,  ///< LayerNorm: the mean is subtracted, the root of the variance divides
  rms     ///< RMSNorm: the root of the mean square divides; without bias
};

/// Where a block has its norms.
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
  Activation activation = Activation::gelu;            ///< of the feed-forward
  bool bias = true;                                    ///< of the linear layers and the LayerNorms
  NormPlacement norm = NormPlacement::first;           ///< where the norms are
  Normalization normalization = Normalization::layer;  ///< which they are
  std::optional<double> norm_eps{};     ///< of the norms; the default of LayerNorm or RMSNorm when not given
  std::size_t num_kv_heads = 0;         ///< of the attention, as MultiHeadAttentionOptions has it
  std::optional<double> rotary_base{};  ///< of the attention, as MultiHeadAttentionOptions has it
  Generator* generator = nullptr;       ///< of the first weights and biases; null: the default one
};

/// x + attention(norm1(x)), then x + feed_forward(norm2(x)), with dropout of what is added. The defaults are GPT-2's
/// block; Llama's (Touvron et al. 2023, arXiv:2302.13971) is
///
///     tg::TransformerBlock<>(width, heads, {.activation = tg::Activation::swiglu, .bias = false,
///                                           .normalization = tg::Normalization::rms, .rotary_base = 10000});
template <class T = float> struct TransformerBlock {
  Dropout dropout;                  ///< of what is added
  LayerNorm<T> norm1;               ///< of the attention
  MultiHeadAttention<T> attention;  ///< width -> width
  LayerNorm<T> norm2;               ///< of the feed-forward
  FeedForward<T> feed_forward;      ///< width -> width
  NormPlacement norm;               ///< where the norms are
  TAPEGRAD_FIELDS(norm1, attention, norm2, feed_forward, dropout)

  /// Throws std::invalid_argument for sizes that are not positive, a dropout outside [0, 1), a negative eps, and what
  /// MultiHeadAttention refuses of heads and rotary positions.
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
