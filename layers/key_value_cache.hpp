/// What attention keeps of a text while it is written, so that each further token costs no more than its own row.
#pragma once

#include "../engine/array/mask.hpp"
#include "../engine/tape/tensor.hpp"

namespace tapegrad {

/// The keys and values of the tokens that one attention layer has seen, of B sequences in G heads. It begins empty and
/// takes its sizes from the first that come; an empty one, `cache = {}`, begins another text. For inference: no
/// gradient reaches what it keeps.
///
///     std::vector<tg::KeyValueCache<>> caches(blocks.size());
///     for (std::size_t i = 0; i < blocks.size(); ++i) x = blocks[i](x, caches[i]);
template <class T = float> class KeyValueCache {
 public:
  /// How many tokens of each sequence it holds.
  std::size_t size() const { return size_; }

  /// Takes in the keys and values of the tokens that come next, then lets their queries attend to all that it holds:
  /// by default each to itself and what is before it. q: (B, T, H D), k: (B, T, G D), v: (B, T, G E) -> (B, T, H E); G
  /// divides H, as in multi_head_attention. The mask is over T queries and size() + T keys. Throws
  /// std::invalid_argument, before it changes, for another batch, other heads or widths than it holds and a mask that
  /// does not fit; std::logic_error while a tape records what is given.
  Tensor<T> attend(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, std::size_t num_heads,
                   const AttentionMask& mask = AttentionMask::causal());

 private:
  Array<T> keys_{Shape{0, 0, 0, 0}}, values_{Shape{0, 0, 0, 0}};  // (B, G, capacity, D), (B, G, capacity, E)
  std::size_t size_ = 0;
};

}  // namespace tapegrad
