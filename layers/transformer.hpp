/// The Transformer block (Vaswani et al. 2017, arXiv:1706.03762).
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

/// The activation between a feed-forward's two layers.
enum class Activation {
  relu,
  gelu,
  gelu_tanh,
  silu,
  swiglu  ///< silu(gate(x)) * fc1(x), with a third layer as the gate (Shazeer 2020, arXiv:2002.05202)
};

/// Options of FeedForward.
struct FeedForwardOptions {
  Activation activation = Activation::gelu;  ///< between the layers
  bool bias = true;                          ///< of all layers
  Generator* generator = nullptr;            ///< draws initial weights and biases; null: the default generator
};

/// fc2(activation(fc1(x))) at each position; with a gate, fc2(silu(gate(x)) * fc1(x)).
template <class T = float> struct FeedForward {
  std::optional<Linear<T>> gate;  ///< width -> hidden; only for swiglu
  Linear<T> fc1;                  ///< width -> hidden
  Linear<T> fc2;                  ///< hidden -> width
  Activation activation;          ///< between them
  TAPEGRAD_FIELDS(gate, fc1, fc2)

  /// Throws std::invalid_argument unless the sizes are positive.
  FeedForward(std::size_t width, std::size_t hidden, const FeedForwardOptions& options = {});

  /// x: (..., width) -> the same
  Tensor<T> operator()(const Tensor<T>& x) const;
};

/// The kind of a block's norms.
enum class Normalization {
  layer,  ///< LayerNorm: subtracts the mean, divides by the standard deviation
  rms     ///< RMSNorm: divides by the root mean square; no bias
};

/// The position of a block's norms.
enum class NormPlacement {
  first,  ///< before the attention and the feed-forward, as in GPT-2: x + f(norm(x))
  last,   ///< after the residual sums, as in the original Transformer: norm(x + f(x))
  none    ///< no norms, and no parameters for them
};

/// Options of TransformerBlock.
struct TransformerBlockOptions {
  std::size_t feed_forward_width = 0;  ///< hidden width of the feed-forward; 0: 4 * width
  double dropout = 0;            ///< probability, in [0, 1), of dropping outputs of the attention and the feed-forward
  double attention_dropout = 0;  ///< probability, in [0, 1), of dropping an attention weight
  Activation activation = Activation::gelu;            ///< of the feed-forward
  bool bias = true;                                    ///< of the linear layers and the LayerNorms
  NormPlacement norm = NormPlacement::first;           ///< position of the norms
  Normalization normalization = Normalization::layer;  ///< kind of the norms
  std::optional<double> norm_eps{};                    ///< of the norms; none: the default of LayerNorm or RMSNorm
  std::size_t num_kv_heads = 0;                        ///< of the attention (see MultiHeadAttentionOptions)
  std::optional<double> rotary_base{};                 ///< of the attention (see MultiHeadAttentionOptions)
  Generator* generator = nullptr;  ///< draws initial weights and biases; null: the default generator
};

/// x + dropout(attention(norm1(x))), then x + dropout(feed_forward(norm2(x))). The default is GPT-2's block; Llama's
/// (Touvron et al. 2023, arXiv:2302.13971) is
///
///     tg::TransformerBlock<>(width, heads, {.activation = tg::Activation::swiglu, .bias = false,
///                                           .normalization = tg::Normalization::rms, .rotary_base = 10000});
template <class T = float> struct TransformerBlock {
  Dropout dropout;                  ///< of the residual branches
  LayerNorm<T> norm1;               ///< before or after the attention
  MultiHeadAttention<T> attention;  ///< width -> width
  LayerNorm<T> norm2;               ///< before or after the feed-forward
  FeedForward<T> feed_forward;      ///< width -> width
  NormPlacement norm;               ///< position of the norms
  TAPEGRAD_FIELDS(norm1, attention, norm2, feed_forward, dropout)

  /// Throws std::invalid_argument unless sizes are positive, dropouts in [0, 1) and eps >= 0, and like
  /// MultiHeadAttention.
  TransformerBlock(std::size_t width, std::size_t num_heads, const TransformerBlockOptions& options = {});

  /// x: (B, T, width) -> the same
  Tensor<T> operator()(const Tensor<T>& x, const AttentionMask& mask = {}) const;

  /// The same for tokens that continue the cache. Appends their keys and values. For inference; throws like
  /// KeyValueCache::attend.
  Tensor<T> operator()(const Tensor<T>& x, KeyValueCache<T>& cache,
                       const AttentionMask& mask = AttentionMask::causal()) const;

  /// The output and the attention weights of MultiHeadAttention::with_weights.
  /// -> (B, T, width), (B, num_heads, T, T)
  std::pair<Tensor<T>, Tensor<T>> with_weights(const Tensor<T>& x, const AttentionMask& mask = {}) const;

 private:
  template <class Attend> Tensor<T> apply(const Tensor<T>& x, Attend attend) const;
};

}  // namespace tapegrad
