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
#include "model/checkpoint.hpp"
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

/// Options of TransformerBlock and TransformerDecoderBlock.
struct TransformerBlockOptions {
  std::size_t feed_forward_width = 0;  ///< hidden width of the feed-forward; 0: 4 * width
  double dropout = 0;                  ///< probability, in [0, 1), of dropping outputs of attention and feed-forward
  double attention_dropout = 0;        ///< probability, in [0, 1), of dropping an attention weight
  Activation activation = Activation::gelu;            ///< of the feed-forward
  bool bias = true;                                    ///< of the linear layers and the LayerNorms
  NormPlacement norm = NormPlacement::first;           ///< position of the norms
  Normalization normalization = Normalization::layer;  ///< kind of the norms
  std::optional<double> norm_eps{};                    ///< of the norms; none: the default of LayerNorm or RMSNorm
  std::size_t num_kv_heads = 0;                        ///< of attention (see MultiHeadAttentionOptions)
  std::optional<double> rotary_base{};                 ///< of self-attention (see MultiHeadAttentionOptions)
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

template <class T> class DecoderCache;

/// The decoder's block of an encoder-decoder Transformer: x + dropout(attention(norm1(x))), then
/// x + dropout(cross_attention(norm2(x), memory)), then x + dropout(feed_forward(norm3(x))). The memory is the
/// encoder's output. B sequences of T positions, with S positions of memory.
template <class T = float> struct TransformerDecoderBlock {
  Dropout dropout;                        ///< of the residual branches
  LayerNorm<T> norm1;                     ///< before or after the self-attention
  MultiHeadAttention<T> attention;        ///< width -> width
  LayerNorm<T> norm2;                     ///< before or after the cross-attention
  MultiHeadAttention<T> cross_attention;  ///< queries of width, keys and values of memory_width -> width
  LayerNorm<T> norm3;                     ///< before or after the feed-forward
  FeedForward<T> feed_forward;            ///< width -> width
  NormPlacement norm;                     ///< position of the norms
  TAPEGRAD_FIELDS(norm1, attention, norm2, cross_attention, norm3, feed_forward, dropout)

  /// memory_width 0: the block's width. Throws like TransformerBlock.
  TransformerDecoderBlock(std::size_t width, std::size_t num_heads, const TransformerBlockOptions& options = {},
                          std::size_t memory_width = 0);

  /// x: (B, T, width), memory: (B, S, memory_width) -> (B, T, width). The masks are those of self-attention and of
  /// cross-attention.
  Tensor<T> operator()(const Tensor<T>& x, const Tensor<T>& memory, const AttentionMask& mask = {},
                       const AttentionMask& memory_mask = {}) const;

  /// The same for tokens that continue the cache, with causal self-attention. Appends their keys and values. For
  /// inference; throws like KeyValueCache::attend, and std::invalid_argument, without changes, if x or the mask does
  /// not fit the memory.
  Tensor<T> operator()(const Tensor<T>& x, DecoderCache<T>& cache, const AttentionMask& memory_mask = {}) const;

  /// The output and the weights of the cross-attention, like MultiHeadAttention::with_weights.
  /// -> (B, T, width), (B, num_heads, T, S)
  std::pair<Tensor<T>, Tensor<T>> with_weights(const Tensor<T>& x, const Tensor<T>& memory,
                                               const AttentionMask& mask = {},
                                               const AttentionMask& memory_mask = {}) const;

 private:
  template <class Attend, class Cross> Tensor<T> apply(const Tensor<T>& x, Attend attend, Cross cross) const;
};

/// One TransformerDecoderBlock's keys and values: those of the previous tokens, and those of the memory, projected
/// once. For inference.
///
///     tg::DecoderCache<> cache(decoder, memory);
///     y = decoder(x, cache, memory_mask);  // x: (B, 1, width), the next tokens
template <class T = float> class DecoderCache {
 public:
  /// memory: (B, S, memory_width). Throws std::logic_error if a tape records the projections.
  DecoderCache(const TransformerDecoderBlock<T>& block, const Tensor<T>& memory);

  /// The number of tokens stored for each sequence.
  std::size_t size() const { return tokens_.size(); }

  /// Keeps these sequences and their memory in this order, each any number of times. rows: (R). Select the rows of the
  /// memory's mask, too. Throws std::out_of_range for a row outside [0, B), without changes.
  void select(const IntArray& rows);

 private:
  friend struct TransformerDecoderBlock<T>;

  KeyValueCache<T> tokens_;
  Tensor<T> keys_, values_;  // of the memory, (B, S, G D)
};

/// Options of load for the parameters of PyTorch's nn.MultiheadAttention, nn.TransformerEncoderLayer,
/// nn.TransformerDecoderLayer and nn.Transformer: renames them, and divides the tensor of three projections. Other
/// parts of a name, such as "encoder.layers.0.", stay the same. Norms and activation are not in the file; this block is
/// PyTorch's default:
///
///     tg::TransformerBlock<> block(512, 8, {.feed_forward_width = 2048, .activation = tg::Activation::relu,
///                                           .norm = tg::NormPlacement::last});
///     tg::load(block, "encoder_layer.safetensors", tg::from_torch_transformer());
LoadOptions from_torch_transformer();

}  // namespace tapegrad
