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

/// Options of MultiHeadAttention.
struct MultiHeadAttentionOptions {
  std::size_t query_dim = 0;            ///< width of the incoming queries; 0: the layer's
  std::size_t key_dim = 0;              ///< width of the keys; 0: the layer's
  std::size_t value_dim = 0;            ///< width of the values; 0: the layer's
  std::size_t num_kv_heads = 0;         ///< heads of keys and values, each for a group of query heads; 0: num_heads
  std::optional<double> rotary_base{};  ///< base of rotary positions (see rotary_embedding); none: no rotation
  bool bias = true;                     ///< of all four projections
  double dropout = 0;                   ///< probability, in [0, 1), of dropping an attention weight in training
  Generator* generator = nullptr;       ///< draws initial weights and biases; null: the default generator
};

/// Multi-head attention: projects queries, keys and values, attends in each head, and projects the joined heads. B
/// batch entries, T queries, S keys and values.
template <class T = float> struct MultiHeadAttention {
  std::size_t num_heads;              ///< H
  std::size_t num_kv_heads;           ///< G: each group of H / G consecutive heads shares one head of keys and values
  std::optional<double> rotary_base;  ///< of rotary positions; none: no rotation
  Dropout dropout;                    ///< of the attention weights
  Linear<T> q_proj;                   ///< query_dim -> dim; head h starts at column h D, D = dim / H
  Linear<T> k_proj;                   ///< key_dim -> G D
  Linear<T> v_proj;                   ///< value_dim -> G D
  Linear<T> out_proj;                 ///< dim -> dim
  TAPEGRAD_FIELDS(q_proj, k_proj, v_proj, out_proj, dropout)
  TAPEGRAD_SETTINGS(num_heads, num_kv_heads, rotary_base)

  /// Throws std::invalid_argument unless sizes are positive, dim is divisible by num_heads, num_heads by num_kv_heads,
  /// dropout is in [0, 1), and for rotary positions D is even and the base a positive number.
  MultiHeadAttention(std::size_t dim, std::size_t num_heads, const MultiHeadAttentionOptions& options = {});

  /// Self-attention. x: (B, T, dim) -> (B, T, dim)
  Tensor<T> operator()(const Tensor<T>& x, const AttentionMask& mask = {}) const;

  /// Self-attention over tokens that continue the cache. Appends their keys and values. x: (B, T, dim) -> (B, T, dim).
  /// For inference, without dropout. Rotary positions continue those of the cache, which holds rotated keys. Throws
  /// like KeyValueCache::attend.
  Tensor<T> operator()(const Tensor<T>& x, KeyValueCache<T>& cache,
                       const AttentionMask& mask = AttentionMask::causal()) const;

  /// Cross-attention. queries: (B, T, query_dim), keys: (B, S, key_dim), values: (B, S, value_dim) -> (B, T, dim).
  /// Rotary positions of queries and keys start at 0.
  Tensor<T> operator()(const Tensor<T>& queries, const Tensor<T>& keys, const Tensor<T>& values,
                       const AttentionMask& mask = {}) const;

  /// Cross-attention to keys and values that k_proj and v_proj have projected before, for repeated calls.
  /// queries: (B, T, query_dim), projected_keys, projected_values: (B, S, G D) -> (B, T, dim). Throws
  /// std::invalid_argument for other widths, and std::logic_error with rotary positions.
  Tensor<T> attend(const Tensor<T>& queries, const Tensor<T>& projected_keys, const Tensor<T>& projected_values,
                   const AttentionMask& mask = {}) const;

  /// The same output and the recorded weights behind it, so weights.retain_grad() works. Slower, and dropout uses other
  /// random numbers. -> (B, T, dim), (B, num_heads, T, S)
  std::pair<Tensor<T>, Tensor<T>> with_weights(const Tensor<T>& queries, const Tensor<T>& keys, const Tensor<T>& values,
                                               const AttentionMask& mask = {}) const;

  /// The attention weights before dropout, for inspection.
  /// queries: (B, T, query_dim), keys: (B, S, key_dim) -> (B, num_heads, T, S)
  Tensor<T> attention_weights(const Tensor<T>& queries, const Tensor<T>& keys, const AttentionMask& mask = {}) const;

 private:
  Tensor<T> rotated(const Tensor<T>& x, std::size_t heads, std::size_t first = 0) const;
  Tensor<T> joined_heads(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, const AttentionMask& mask) const;
};

}  // namespace tapegrad
