#include "mask_rows.hpp"

#include <algorithm>
#include <limits>

#include "../error.hpp"
#include "rows.hpp"

namespace tapegrad::detail {
namespace {

template <class Mask>
Strides strides_for(const char* operation, const std::optional<Mask>& mask, const Shape& scores, const char* kind) {
  if (!mask) return {};
  require(broadcasts_to(mask->shape(), scores), operation, "expected ", kind,
          " that fits scores of shape (B, H, T, S) ", to_string(scores), ", given one of shape ",
          to_string(mask->shape()));
  return broadcast_strides(mask->shape(), scores);
}

std::ptrdiff_t row_offset(const Strides& strides, std::size_t b, std::size_t h, std::size_t t) {
  return static_cast<std::ptrdiff_t>(b) * strides[0] + static_cast<std::ptrdiff_t>(h) * strides[1] +
         static_cast<std::ptrdiff_t>(t) * strides[2];
}

}  // namespace

template <class T>
MaskRows<T>::MaskRows(const char* operation, const AttentionMask& mask, std::size_t batch, std::size_t heads,
                      std::size_t queries, std::size_t keys)
    : mask_(mask), keys_(keys) {
  const Shape scores{batch, heads, queries, keys};
  lengths_ = strides_for(operation, mask.lengths_, scores, "valid_lens (B, 1, 1, 1) or (B, 1, T, 1)");
  allowed_ = strides_for(operation, mask.allowed_, scores, "a mask");
  bias_ = strides_for(operation, mask.bias_, scores, "an additive mask");
}

template <class T> void MaskRows<T>::softmax(std::size_t b, std::size_t h, std::size_t t, T* scores) const {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  std::size_t visible = mask_.causal_ ? std::min(keys_, t + 1) : keys_;
  if (mask_.lengths_)
    visible = std::min(visible, static_cast<std::size_t>(mask_.lengths_->data()[row_offset(lengths_, b, h, t)]));
  if (mask_.allowed_) {
    const bool* allowed = mask_.allowed_->data() + row_offset(allowed_, b, h, t);
    for (std::size_t s = 0; s < visible; ++s, allowed += allowed_[3])
      if (!*allowed) scores[s] = hidden;
  }
  if (mask_.bias_) {
    const double* bias = mask_.bias_->data() + row_offset(bias_, b, h, t);
    for (std::size_t s = 0; s < visible; ++s, bias += bias_[3]) scores[s] += static_cast<T>(*bias);
  }
  if (row_max(scores, visible) == hidden)
    visible = 0;
  else
    row_softmax(scores, scores, visible);
  std::fill(scores + visible, scores + keys_, T(0));
}

template class MaskRows<float>;
template class MaskRows<double>;

}  // namespace tapegrad::detail
