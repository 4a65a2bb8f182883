#include "mask.hpp"

#include <xtensor/xmath.hpp>

#include <functional>
#include <utility>

#include "internal/error.hpp"
#include "internal/layout.hpp"

namespace tapegrad {

namespace {

// Masks broadcast to (B, H, T, S). The first of three axes is ambiguous, B or H.
void require_broadcastable(const char* maker, const Shape& shape) {
  detail::require(shape.size() <= 4 && !(shape.size() == 3 && shape[0] != 1), maker,
                  "expected shape (T, S), (B, 1, T, S) or another that broadcasts to (B, H, T, S), got ", shape,
                  shape.size() == 3 ? "; reshape one mask per batch entry to (B, 1, T, S)" : "");
}

template <class T, class Join> Value<T> joined(const Value<T>& a, const Value<T>& b, Join join) {
  if (!a || !b) return a ? a : b;
  const char* operation = "AttentionMask &";
  detail::require_addressable<T>(operation, detail::broadcast_shapes(operation, a->shape(), b->shape()));
  return make_value<T>(join(*a, *b));
}

}  // namespace

AttentionMask AttentionMask::causal() { return {true, {}, {}, {}}; }

AttentionMask AttentionMask::key_padding(BoolArray keep) {
  detail::require(keep.dimension() == 2, "AttentionMask::key_padding", "expected shape (B, S), got ", keep.shape());
  keep.reshape(Shape{keep.shape()[0], 1, 1, keep.shape()[1]});
  return boolean(std::move(keep));
}

AttentionMask AttentionMask::valid_lens(IntArray lengths) {
  detail::require(lengths.dimension() == 1 || lengths.dimension() == 2, "AttentionMask::valid_lens",
                  "expected shape (B) or (B, T), got ", lengths.shape());
  for (std::int64_t length : lengths)
    detail::require_in_range(length >= 0, "AttentionMask::valid_lens", "expected lengths of at least 0, got ", length);
  lengths.reshape(Shape{lengths.shape()[0], 1, lengths.dimension() == 2 ? lengths.shape()[1] : 1, 1});
  return {false, make_value<std::int64_t>(std::move(lengths)), {}, {}};
}

AttentionMask AttentionMask::boolean(BoolArray allowed) {
  require_broadcastable("AttentionMask::boolean", allowed.shape());
  return {false, {}, make_value<bool>(std::move(allowed)), {}};
}

AttentionMask AttentionMask::additive(Array<double> bias) {
  require_broadcastable("AttentionMask::additive", bias.shape());
  return {false, {}, {}, make_value<double>(std::move(bias))};
}

AttentionMask operator&(const AttentionMask& a, const AttentionMask& b) {
  return {a.causal_ || b.causal_,
          joined(a.lengths_, b.lengths_, [](const auto& m, const auto& n) { return xt::minimum(m, n); }),
          joined(a.allowed_, b.allowed_, std::logical_and<>()), joined(a.bias_, b.bias_, std::plus<>())};
}

std::string to_string(const AttentionMask& mask) {
  std::string text = mask.causal_ ? "causal" : "";
  const auto add = [&](const char* name, const auto& array) {
    if (array) text += (text.empty() ? "" : " & ") + (name + to_string(array->shape()));
  };
  add("lengths ", mask.lengths_);
  add("allowed ", mask.allowed_);
  add("bias ", mask.bias_);
  return text.empty() ? "none" : text;
}

}  // namespace tapegrad
