/// Which keys each query may attend to.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "array.hpp"
#include "reset_on_move.hpp"

namespace tapegrad {

namespace detail {
template <class T> class MaskRows;
}

/// A mask for attention over B batch entries, H heads, T queries and S keys, where true means "may attend". A query
/// attends to the keys that all masks joined by `&` allow. The number of axes is checked here, the extents in
/// attention: std::invalid_argument. Copies share their arrays, which never change.
class AttentionMask {
 public:
  AttentionMask() = default;                  ///< every query attends to every key
  static AttentionMask none() { return {}; }  ///< the same by its name

  /// Query t attends to the keys 0, ..., t + S - T: the last one to all keys, as with a key-value cache. If T > S, the
  /// first T - S queries attend to nothing. (PyTorch's is_causal and boolean(causal_mask(T, S)) align at key 0.)
  static AttentionMask causal();

  static AttentionMask key_padding(BoolArray keep);  ///< keep: (B, S), true for real tokens, false for padding.

  /// lengths: (B), or (B, T) per query: the first `length` keys are visible, all if above S. Throws std::out_of_range
  /// if negative.
  static AttentionMask valid_lens(IntArray lengths);

  static AttentionMask boolean(BoolArray allowed);  ///< broadcasts to (B, H, T, S); the first of three axes is 1

  static AttentionMask additive(Array<double> bias);  ///< broadcasts likewise, added to the scores; -inf hides

  /// Both masks, and the sum of their biases. Throws std::invalid_argument if they do not broadcast together.
  friend AttentionMask operator&(const AttentionMask& a, const AttentionMask& b);

  /// The mask's parts and their shapes: "causal & lengths (2, 1, 1, 1)"; "none" without any.
  friend std::string to_string(const AttentionMask& mask);

 private:
  template <class T> friend class detail::MaskRows;

  AttentionMask(bool causal, Value<std::int64_t> lengths, Value<bool> allowed, Value<double> bias)
      : causal_(causal), lengths_(std::move(lengths)), allowed_(std::move(allowed)), bias_(std::move(bias)) {}

  detail::ResetOnMove<bool> causal_;
  Value<std::int64_t> lengths_;  // (B, 1, 1 or T, 1), or null
  Value<bool> allowed_;          // broadcasts to (B, H, T, S), or null
  Value<double> bias_;           // broadcasts to (B, H, T, S), or null
};

}  // namespace tapegrad
