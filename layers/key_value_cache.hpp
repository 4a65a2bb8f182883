/// The cache of keys and values for generating one token at a time.
#pragma once

#include <cstddef>

#include "../engine/array/array.hpp"
#include "../engine/array/mask.hpp"
#include "../engine/array/reset_on_move.hpp"
#include "../engine/tape/tensor.hpp"

namespace tapegrad {

/// One attention layer's keys and values of previous tokens, for B sequences and G heads. Sizes follow from the first
/// tokens; `cache = {}` starts another text. For inference: no gradient reaches the stored keys and values.
///
///     std::vector<tg::KeyValueCache<>> caches(blocks.size());
///     for (std::size_t i = 0; i < blocks.size(); ++i) x = blocks[i](x, caches[i]);
template <class T = float> class KeyValueCache {
 public:
  /// The number of tokens stored for each sequence.
  std::size_t size() const { return size_; }

  /// Appends the keys and values of the next tokens, then attends with their queries to all stored ones, by default
  /// causally. q: (B, T, H D), k: (B, T, G D), v: (B, T, G E) -> (B, T, H E); G divides H, as in multi_head_attention.
  /// The mask is over T queries and size() + T keys. Throws std::invalid_argument, without changes, if batch, heads or
  /// widths differ from the stored ones or the mask does not fit; std::logic_error if an argument requires a gradient.
  Tensor<T> attend(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, std::size_t num_heads,
                   const AttentionMask& mask = AttentionMask::causal());

  /// Keeps these sequences in this order, each any number of times, as in beam search. rows: (R). Does nothing to an
  /// empty cache. Throws std::out_of_range for a row outside [0, B), without changes.
  void select(const IntArray& rows);

 private:
  Array<T> keys_{Shape{0, 0, 0, 0}}, values_{Shape{0, 0, 0, 0}};  // (B, G, capacity, D), (B, G, capacity, E)
  detail::ResetOnMove<std::size_t> size_;
};

}  // namespace tapegrad
