/// An AttentionMask made ready for scores of one shape.
#pragma once

#include "../mask.hpp"

namespace tapegrad::detail {

template <class T> class MaskRows {
 public:
  /// Throws std::invalid_argument naming `operation` when the mask does not fit scores of shape (B, H, T, S).
  MaskRows(const char* operation, const AttentionMask& mask, std::size_t batch, std::size_t heads, std::size_t queries,
           std::size_t keys);

  /// Turns the scores (S) of query t into its attention weights, in place: 0 where the mask hides, and 0 throughout
  /// when it hides every key.
  void softmax(std::size_t b, std::size_t h, std::size_t t, T* scores) const;

 private:
  const AttentionMask& mask_;
  std::size_t keys_;
  Strides lengths_, allowed_, bias_;  // of the mask's arrays, broadcast to (B, H, T, S)
};

}  // namespace tapegrad::detail
