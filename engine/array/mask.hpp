/// Which keys each query may attend to.
#pragma once

#include <string>

#include "array.hpp"
#include "shape.hpp"

namespace tapegrad {

namespace detail {
template <class T> class MaskRows;
}

/// A mask for attention over B batch entries, H heads, T queries and S keys. In it, true may attend. Masks join with
/// `&`: a query then attends to what all of them allow. Numbers of axes are checked when a mask is made, extents when
/// it meets the scores: std::invalid_argument. Copies share their arrays, which never change.
class AttentionMask {
 public:
  /// Every query attends to every key.
  AttentionMask() = default;
  static AttentionMask none() { return {}; }  ///< the same by its name

  /// The last query attends to all keys, each one before it to one key less: query t to the keys 0, ..., t + S - T. So
  /// it stays right for the queries of a text's end beside the keys of all of it. Where there are more queries than
  /// keys, the first T - S come before every key and attend to nothing. (PyTorch's is_causal shows query t the keys 0,
  /// ..., t whatever S is; that is boolean(causal_mask(T, S)).)
  static AttentionMask causal();

  /// keep: (B, S), true for real tokens, false for padding.
  static AttentionMask key_padding(BoolArray keep);

  /// lengths: (B), or (B, T) for a length of each query: the first `length` keys may be attended to. Throws
  /// std::out_of_range for a negative length; one longer than S hides nothing.
  static AttentionMask valid_lens(IntArray lengths);

  /// allowed: broadcasts to (B, H, T, S). Of three axes the first could be B or H: it is 1.
  static AttentionMask boolean(BoolArray allowed);

  /// bias: broadcasts to (B, H, T, S), as allowed does, and is added to the scores; -inf hides.
  static AttentionMask additive(Array<double> bias);

  /// What both masks allow; biases add up. Throws std::invalid_argument where they do not broadcast together.
  friend AttentionMask operator&(const AttentionMask& a, const AttentionMask& b);

  /// The mask's parts and their shapes: "causal & lengths (2, 1, 1, 1)"; "none" without any.
  friend std::string to_string(const AttentionMask& mask);

 private:
  template <class T> friend class detail::MaskRows;

  bool causal_ = false;
  Value<std::int64_t> lengths_;  // (B, 1, 1 or T, 1), or null
  Value<bool> allowed_;          // broadcasts to (B, H, T, S), or null
  Value<double> bias_;           // broadcasts to (B, H, T, S), or null
};

}  // namespace tapegrad
