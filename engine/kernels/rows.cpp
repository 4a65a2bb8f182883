#include "rows.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "../array/internal/error.hpp"

namespace tapegrad::detail {
namespace {

// The shape of valid_lens as passed by the caller, (B) or (B, T).
std::string described_lengths(const Shape& mask) {
  return to_string(mask[2] == 1 ? Shape{mask[0]} : Shape{mask[0], mask[2]});
}

// The shape of a mask, and of the key padding that makes one of this shape.
std::string described_mask(const Shape& mask) {
  const bool can_be_padding = mask.size() == 4 && mask[1] == 1 && mask[2] == 1;
  return to_string(mask) + (can_be_padding ? ", as from key_padding of " + to_string(Shape{mask[0], mask[3]}) : "");
}

template <class T>
Strides strides_for(const char* operation, const Value<T>& mask, const Shape& scores, const char* kind,
                    std::string (*describe)(const Shape&)) {
  if (!mask) return {};
  require(broadcasts_to(mask->shape(), scores), operation, "expected ", kind, " for scores (B, H, T, S) of shape ",
          scores, ", got ", [&] { return describe(mask->shape()); });
  return broadcast_strides(mask->shape(), scores);
}

std::ptrdiff_t offset_of(const Strides& strides, std::size_t b, std::size_t h, std::size_t t, std::size_t s = 0) {
  return static_cast<std::ptrdiff_t>(b) * strides[0] + static_cast<std::ptrdiff_t>(h) * strides[1] +
         static_cast<std::ptrdiff_t>(t) * strides[2] + static_cast<std::ptrdiff_t>(s) * strides[3];
}

}  // namespace

template <class T>
MaskRows<T>::MaskRows(const char* operation, AttentionMask mask, std::size_t batch, std::size_t heads,
                      std::size_t queries, std::size_t keys)
    : mask_(std::move(mask)), queries_(queries), keys_(keys) {
  const Shape scores{batch, heads, queries, keys};
  lengths_ = strides_for(operation, mask_.lengths_, scores, "valid_lens of shape (B) or (B, T)", described_lengths);
  allowed_ = strides_for(operation, mask_.allowed_, scores, "a mask that broadcasts", described_mask);
  bias_ = strides_for(operation, mask_.bias_, scores, "an additive mask that broadcasts", described_mask);
}

template <class T> std::size_t MaskRows<T>::visible(std::size_t b, std::size_t h, std::size_t t) const {
  // Each later query sees one more key; the last one sees all.
  const std::size_t hidden = mask_.causal_ ? std::min(keys_, queries_ - 1 - t) : 0;
  std::size_t visible = keys_ - hidden;
  if (mask_.lengths_)
    visible = std::min(visible, static_cast<std::size_t>(mask_.lengths_->data()[offset_of(lengths_, b, h, t)]));
  return visible;
}

template <class T>
std::size_t MaskRows<T>::apply(std::size_t b, std::size_t h, std::size_t t, std::size_t first, std::size_t count,
                               T* scores) const {
  constexpr T hidden = -std::numeric_limits<T>::infinity();
  const std::size_t seen = std::clamp(visible(b, h, t), first, first + count) - first;
  if (mask_.bias_) {
    const double* bias = mask_.bias_->data() + offset_of(bias_, b, h, t, first);
    for (std::size_t s = 0; s < seen; ++s, bias += bias_[3]) scores[s] += static_cast<T>(*bias);
  }
  if (mask_.allowed_) {
    const bool* allowed = mask_.allowed_->data() + offset_of(allowed_, b, h, t, first);
    for (std::size_t s = 0; s < seen; ++s, allowed += allowed_[3])
      if (!*allowed) scores[s] = hidden;
  }
  constexpr std::size_t kMaxLanes = 16;  // floats in the longest vectors
  const std::size_t rounded = std::min(count, (seen + kMaxLanes - 1) / kMaxLanes * kMaxLanes);
  std::fill(scores + seen, scores + rounded, hidden);
  return rounded;
}

template <class T> void MaskRows<T>::softmax(std::size_t b, std::size_t h, std::size_t t, T* scores) const {
  const std::size_t seen = apply(b, h, t, 0, keys_, scores);
  const bool hidden =
      std::all_of(scores, scores + seen, [](T score) { return score == -std::numeric_limits<T>::infinity(); });
  if (!hidden) row_softmax(vector_loops<T>(), scores, scores, seen);
  std::fill(hidden ? scores : scores + seen, scores + keys_, T(0));
}

template class MaskRows<float>;
template class MaskRows<double>;

}  // namespace tapegrad::detail
