#include "key_value_cache.hpp"

#include <algorithm>
#include <cmath>

#include "../engine/array/internal/layout.hpp"
#include "../engine/kernels/attention.hpp"

namespace tapegrad {
namespace {

using detail::HeadLayout;

constexpr const char* kName = "KeyValueCache";

// (B, H, capacity, D)
HeadLayout layout_of_kept(const Shape& shape, std::size_t rows) {
  return HeadLayout::of_heads(shape[1], shape[2], rows, shape[3]);
}

// (B, T, H D)
HeadLayout layout_of_new(const Shape& shape, std::size_t heads) {
  return HeadLayout::of_columns(heads, shape[1], shape[2]);
}

// Copies the rows of each head behind the first `size` of `to`'s.
template <class T> void copy_rows(const T* from, const HeadLayout& from_layout, Array<T>& to, std::size_t size) {
  const HeadLayout to_layout = layout_of_kept(to.shape(), size + from_layout.rows);
  for (std::size_t b = 0; b < to.shape()[0]; ++b)
    for (std::size_t h = 0; h < to.shape()[1]; ++h)
      for (std::size_t r = 0; r < from_layout.rows; ++r)
        std::copy_n(from_layout.at(from, b, h).row(r), from_layout.width, to_layout.at(to.data(), b, h).row(size + r));
}

// The same rows with room for more. Twice the room each time: of all rows, each is moved once on average.
template <class T> Array<T> with_room(const Array<T>& kept, std::size_t size, const Shape& shape) {
  auto grown = detail::uninitialized<T>(kName, shape);
  if (size > 0) copy_rows(kept.data(), layout_of_kept(kept.shape(), size), grown, 0);
  return grown;
}

}  // namespace

template <class T>
Tensor<T> KeyValueCache<T>::attend(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, std::size_t num_heads,
                                   const AttentionMask& mask) {
  const Shape &sq = q.shape(), &sk = k.shape(), &sv = v.shape();
  const auto given = [&] { return to_string(sq) + ", " + to_string(sk) + " and " + to_string(sv); };
  detail::require(sq.size() == 3 && sk == sq && sv.size() == 3 && sv[0] == sq[0] && sv[1] == sq[1], kName,
                  "expected queries and keys (B, T, H D) and values (B, T, H E), given ", given);
  detail::require(num_heads > 0 && sq[2] % num_heads == 0 && sv[2] % num_heads == 0, kName,
                  "expected widths that the number of heads divides, given ", num_heads, " heads and shapes ", given);
  detail::require_usage(!q.requires_grad() && !k.requires_grad() && !v.requires_grad(), kName,
                        "expected to be used without a tape, since no gradient reaches the keys that it keeps, given "
                        "tensors that are recorded (tg::NoGrad pauses a tape)");
  const std::size_t batch = sq[0], width = sq[2] / num_heads, value_width = sv[2] / num_heads, rows = size_ + sq[1];
  const auto fits = [&](const Array<T>& kept, std::size_t head_width) {
    return kept.shape()[0] == batch && kept.shape()[1] == num_heads && kept.shape()[3] == head_width;
  };
  detail::require(size_ == 0 || (fits(keys_, width) && fits(values_, value_width)), kName, "expected what follows ",
                  size_, " tokens of ", keys_.shape()[0], " sequences in ", keys_.shape()[1],
                  " heads with keys of width ", keys_.shape()[3], " and values of width ", values_.shape()[3],
                  ", given ", batch, " sequences in ", num_heads, " heads with keys of width ", width,
                  " and values of width ", value_width);

  Array<T> out = detail::uninitialized<T>(kName, sv), statistics(Shape{batch, num_heads, sq[1], 2});
  const detail::MaskRows<T> masks(kName, mask, batch, num_heads, sq[1], rows);
  if (size_ == 0 || rows > keys_.shape()[2]) {
    const std::size_t capacity = std::max<std::size_t>(2 * rows, 64);
    Array<T> keys = with_room(keys_, size_, {batch, num_heads, capacity, width});
    values_ = with_room(values_, size_, {batch, num_heads, capacity, value_width});
    keys_ = std::move(keys);
  }
  copy_rows(k.value().data(), layout_of_new(sk, num_heads), keys_, size_);
  copy_rows(v.value().data(), layout_of_new(sv, num_heads), values_, size_);
  const detail::AttentionLayout layout{batch,
                                       num_heads,
                                       layout_of_new(sq, num_heads),
                                       layout_of_kept(keys_.shape(), rows),
                                       layout_of_kept(values_.shape(), rows),
                                       layout_of_new(sv, num_heads)};
  const detail::Attention<T> attention{layout, static_cast<T>(1 / std::sqrt(static_cast<double>(width))), 0, 0, masks};
  attention.forward(q.value().data(), keys_.data(), values_.data(), out.data(), statistics.data());
  size_ = rows;
  return out;
}

template class KeyValueCache<float>;
template class KeyValueCache<double>;

}  // namespace tapegrad
