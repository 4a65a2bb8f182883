/// Attention with several heads (Vaswani et al. 2017, arXiv:1706.03762).
#pragma once

#include <optional>
#include <utility>

#include "../engine/array/mask.hpp"
#include "../engine/array/random.hpp"
#include "dropout.hpp"
#include "key_value_cache.hpp"
#include "linear.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// What may be set beside the widths.
struct MultiHeadAttentionOptions {
  std::size_t query_dim = 0;     ///< width of the queries that come in; 0: as wide as the layer
  std::size_t key_dim = 0;       ///< of the keys
  std::size_t value_dim = 0;     ///< of the values
  std::size_t num_kv_heads = 0;  ///< heads of keys and values, which share out the queries' heads; 0: a head for each
  std::optional<double> rotary_base{};  ///< rotates queries and keys by their positions, as rotary_embedding does
  bool bias = true;                     ///< of all four projections
  double dropout = 0;                   ///< probability, in [0, 1), of dropping an attention weight in training
  Generator* generator = nullptr;       ///< of the projections' first weights and biases; null: the default one
};

/// Each head compares projections of queries and keys, and takes the mean of the projected values weighted by the
/// softmax of the scores; a last projection joins the heads. B batch entries, T queries, S keys with their values.
template <class T = float> struct MultiHeadAttention {
  std::size_t num_heads;              ///< H
  std::size_t num_kv_heads;           ///< G: each group of H / G heads in a row shares one of keys and values
  std::optional<double> rotary_base;  ///< of the rotary positions, if there are any
  Dropout dropout;                    ///< of the attention weights
  Linear<T> q_proj;    ///< query_dim -> dim; head h has the columns from h D on, D = dim / H, also of keys and values
  Linear<T> k_proj;    ///< key_dim -> G D
  Linear<T> v_proj;    ///< value_dim -> G D
  Linear<T> out_proj;  ///< dim -> dim
  TAPEGRAD_FIELDS(q_proj, k_proj, v_proj, out_proj, dropout)
  TAPEGRAD_SETTINGS(num_heads, num_kv_heads, rotary_base)

  /// Throws std::invalid_argument for sizes that are not positive, a dim that num_heads does not divide, a num_heads
  /// that num_kv_heads does not divide, a dropout outside [0, 1), and for rotary positions with an odd D or a base that
  /// is not a positive number.
  MultiHeadAttention(std::size_t dim, std::size_t num_heads, const MultiHeadAttentionOptions& options = {});

  /// Self-attention. x: (B, T, dim) -> (B, T, dim)
  Tensor<T> operator()(const Tensor<T>& x, const AttentionMask& mask = {}) const;

  /// Self-attention of tokens that follow those in the cache, which takes theirs in. x: (B, T, dim) -> (B, T, dim). For
  /// inference: there is no dropout. Rotary positions go on from those in the cache, which holds rotated keys. Throws
  /// as KeyValueCache::attend does.
  Tensor<T> operator()(const Tensor<T>& x, KeyValueCache<T>& cache,
                       const AttentionMask& mask = AttentionMask::causal()) const;

  /// queries: (B, T, query_dim), keys: (B, S, key_dim), values: (B, S, value_dim) -> (B, T, dim). Rotary positions of
  /// queries and of keys begin at 0.
  Tensor<T> operator()(const Tensor<T>& queries, const Tensor<T>& keys, const Tensor<T>& values,
                       const AttentionMask& mask = {}) const;

  /// The same output, computed one step after the other, and the weights that it was made with: those of
  /// attention_weights, at their place on the tape, so that weights.retain_grad() keeps their gradient. Slower, and
  /// with other random numbers in dropout. -> (B, T, dim), (B, num_heads, T, S)
  std::pair<Tensor<T>, Tensor<T>> with_weights(const Tensor<T>& queries, const Tensor<T>& keys, const Tensor<T>& values,
                                               const AttentionMask& mask = {}) const;

  /// How much each query attends to each key, for looking at: before dropout.
  /// queries: (B, T, query_dim), keys: (B, S, key_dim) -> (B, num_heads, T, S)
  Tensor<T> attention_weights(const Tensor<T>& queries, const Tensor<T>& keys, const AttentionMask& mask = {}) const;

 private:
  Tensor<T> rotated(const Tensor<T>& x, std::size_t heads, std::size_t first = 0) const;
};

}  // namespace tapegrad
