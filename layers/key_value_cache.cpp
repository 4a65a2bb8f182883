#include "key_value_cache.hpp"

#include <algorithm>

#include "../engine/array/batches.hpp"
#include "../engine/array/internal/layout.hpp"
#include "../engine/kernels/attention.hpp"

namespace tapegrad {
namespace {

using detail::HeadLayout;

constexpr const char* kCache = "KeyValueCache";

// (B, H, capacity, D)
HeadLayout cache_layout(const Shape& shape, std::size_t rows) {
  return HeadLayout::of_heads(shape[1], shape[2], rows, shape[3]);
}

// Copies the rows of each head to `to`, after its first `size` rows.
template <class T> void copy_rows(const T* from, const HeadLayout& from_layout, Array<T>& to, std::size_t size) {
  const HeadLayout to_layout = cache_layout(to.shape(), size + from_layout.rows);
  for (std::size_t b = 0; b < to.shape()[0]; ++b)
    for (std::size_t h = 0; h < to.shape()[1]; ++h)
      for (std::size_t r = 0; r < from_layout.rows; ++r)
        std::copy_n(from_layout.at(from, b, h).row(r), from_layout.width, to_layout.at(to.data(), b, h).row(size + r));
}

// The first `size` rows of each head of some sequences, in an array of this shape.
template <class T>
Array<T> copied(const Array<T>& kept, std::size_t size, const IntArray& sequences, const Shape& shape) {
  auto out = detail::uninitialized<T>(kCache, shape);
  const HeadLayout from = cache_layout(kept.shape(), size), to = cache_layout(shape, size);
  if (size == 0) return out;
  for (std::size_t b = 0; b < shape[0]; ++b)
    for (std::size_t h = 0; h < shape[1]; ++h)
      std::copy_n(from.at(kept.data(), static_cast<std::size_t>(sequences.data()[b]), h).row(0), size * to.width,
                  to.at(out.data(), b, h).row(0));
  return out;
}

}  // namespace

template <class T>
Tensor<T> KeyValueCache<T>::attend(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, std::size_t num_heads,
                                   const AttentionMask& mask) {
  const Shape &sq = q.shape(), &sk = k.shape();
  detail::require(sq.size() == 3 && sk.size() == 3 && sk[1] == sq[1], kCache,
                  "expected queries (B, T, H D), keys (B, T, G D) and values (B, T, G E) of the same tokens, got ", sq,
                  ", ", sk, " and ", v.shape());
  detail::AttentionLayout layout = detail::layout_of_columns(kCache, sq, sk, v.shape(), num_heads);
  detail::require_usage(!q.requires_grad() && !k.requires_grad() && !v.requires_grad(), kCache,
                        "expected constants, because the cached keys receive no gradients, got recorded tensors or "
                        "parameters; use tg::NoGrad for the former, detach() for the latter");
  const std::size_t batch = layout.batch, groups = layout.groups(), rows = size_ + layout.k.rows;
  const auto fits = [&](const Array<T>& kept, const HeadLayout& added) {
    return kept.shape()[0] == batch && kept.shape()[1] == groups && kept.shape()[3] == added.width;
  };
  detail::require(size_ == 0 || (fits(keys_, layout.k) && fits(values_, layout.v)), kCache, "expected to continue ",
                  size_, " tokens of ", keys_.shape()[0], " sequences in ", keys_.shape()[1],
                  " heads with keys of width ", keys_.shape()[3], " and values of width ", values_.shape()[3], ", got ",
                  batch, " sequences in ", groups, " heads with keys of width ", layout.k.width,
                  " and values of width ", layout.v.width);

  Array<T> out = detail::uninitialized<T>(kCache, {batch, layout.q.rows, num_heads * layout.v.width});
  Array<T> statistics(Shape{batch, num_heads, layout.q.rows, 2});
  const detail::MaskRows<T> masks(kCache, mask, batch, num_heads, layout.q.rows, rows);
  if (size_ == 0 || rows > keys_.shape()[2]) {
    const std::size_t capacity = std::max<std::size_t>(2 * rows, 64);  // doubled, so each row moves once on average
    const IntArray all = arange(static_cast<std::int64_t>(batch));
    Array<T> keys = copied(keys_, size_, all, {batch, groups, capacity, layout.k.width});
    values_ = copied(values_, size_, all, {batch, groups, capacity, layout.v.width});
    keys_ = std::move(keys);
  }
  copy_rows(k.value().data(), layout.k, keys_, size_);
  copy_rows(v.value().data(), layout.v, values_, size_);
  layout.k = cache_layout(keys_.shape(), rows);
  layout.v = cache_layout(values_.shape(), rows);
  const double scale = layout.default_scale();
  const detail::Attention<T> attention{layout, static_cast<T>(scale), 0, 0, masks};
  attention.forward(q.value().data(), keys_.data(), values_.data(), out.data(), statistics.data());
  size_ = rows;
  return out;
}

template <class T> void KeyValueCache<T>::select(const IntArray& rows) {
  const std::size_t batch = keys_.shape()[0];
  if (size_ == 0 || rows == arange(static_cast<std::int64_t>(batch))) return;  // greedy search keeps all in order
  for (const std::int64_t row : rows)
    detail::require_in_range(row >= 0 && static_cast<std::size_t>(row) < batch, kCache, "expected rows from 0 to ",
                             static_cast<std::ptrdiff_t>(batch) - 1, ", got ", row);
  const auto selected = [&](const Array<T>& kept) {
    const Shape& shape = kept.shape();
    return copied(kept, size_, rows, {rows.size(), shape[1], shape[2], shape[3]});
  };
  Array<T> keys = selected(keys_);
  values_ = selected(values_);
  keys_ = std::move(keys);
}

template class KeyValueCache<float>;
template class KeyValueCache<double>;

}  // namespace tapegrad
