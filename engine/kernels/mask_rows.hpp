/// An AttentionMask prepared for scores of one shape.
#pragma once

#include "../array/internal/layout.hpp"
#include "../array/mask.hpp"

namespace tapegrad::detail {

template <class T> class MaskRows {
 public:
  /// Throws std::invalid_argument naming `operation` if the mask does not fit scores of shape (B, H, T, S).
  MaskRows(const char* operation, AttentionMask mask, std::size_t batch, std::size_t heads, std::size_t queries,
           std::size_t keys);

  /// The max number of visible keys of query t: later ones are in its future or beyond its valid length.
  std::size_t visible(std::size_t b, std::size_t h, std::size_t t) const;

  /// Masks query t's scores of the keys first, ..., first + count - 1: adds the bias and sets masked scores to -inf.
  /// Returns the number of scores to use, rounded up to whole vectors; later ones are masked, too, but not written.
  std::size_t apply(std::size_t b, std::size_t h, std::size_t t, std::size_t first, std::size_t count, T* scores) const;

  /// Turns query t's scores of all keys into weights, with zeros for masked keys and throughout fully masked rows.
  void softmax(std::size_t b, std::size_t h, std::size_t t, T* scores) const;

  /// Adds the mask's parts to an operation's arguments.
  template <class A> void describe(A& arguments) const {
    if (mask_.causal_) arguments.add("causal", true);
    arguments.add("valid_lens", mask_.lengths_).add("allowed", mask_.allowed_).add("bias", mask_.bias_);
  }

 private:
  AttentionMask mask_;
  std::size_t queries_, keys_;
  Strides lengths_, allowed_, bias_;  // of the mask's arrays, broadcast to (B, H, T, S)
};

}  // namespace tapegrad::detail
