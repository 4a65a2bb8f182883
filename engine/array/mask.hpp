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

/// A mask for attention over B batch entries, H heads, T queries and S keys; true may attend. Joined by `&`, all masks
/// must allow it. The axes are checked here, their extents in attention: std::invalid_argument. Copies share arrays.
class AttentionMask {
 public:
  /// Every query attends to every key.
  AttentionMask() = default;
  static AttentionMask none() { return {}; }  ///< the same by its name

  /// Query t attends to the keys 0, ..., t + S - T: the last one to all keys, as with a key-value cache. If T > S, the
  /// first T - S queries attend to nothing. (PyTorch's is_causal and boolean(causal_mask(T, S)) align at key 0.)
  static AttentionMask causal();

  /// keep: (B, S), true for real tokens, false for padding.
  static AttentionMask key_padding(BoolArray keep);

  /// lengths: (B), or (B, T) for each query: the first `length` keys may be attended to. Throws std::out_of_range for a
  /// negative length; one above S hides nothing.
  static AttentionMask valid_lens(IntArray lengths);

  /// allowed: broadcasts to (B, H, T, S); the first of three axes is 1.
  static AttentionMask boolean(BoolArray allowed);

  /// bias: broadcasts like `allowed` and is added to the scores; -inf hides.
  static AttentionMask additive(Array<double> bias);

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
