/// Mini-batches: rows of arrays, in any order, and sequences of different lengths.
///
///     for (const auto& rows : tg::batches(texts.size(), 32)) {    // each epoch in another order
///       const auto x = tg::rows(features, rows);                  // (32, ...)
///       const auto y = tg::rows(labels, rows);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <vector>

#include "array.hpp"
#include "random.hpp"

namespace tapegrad {
namespace detail {

/// The shape of `rows`' result. Throws like rows.
Shape shape_of_rows(const Shape& shape, const IntArray& order, std::size_t element_size);

IntArray padded(std::size_t rows, std::size_t columns, std::int64_t padding);  ///< (rows, columns), all `padding`

}  // namespace detail

/// Slice i of the result is slice order[i] of an array or expression x along axis 0. x: (n, ...), order: S -> (S, ...).
/// Throws std::out_of_range naming the first index outside [0, n), and std::invalid_argument if x has no axis.
template <class E>
requires xt::is_xexpression<E>::value Array<typename E::value_type> rows(const E& x, const IntArray& order) {
  using X = Array<typename E::value_type>;
  const X& from = x;  // evaluates an expression
  X out(detail::shape_of_rows(from.shape(), order, sizeof(typename X::value_type)));
  const std::size_t size = order.size() == 0 ? 0 : out.size() / order.size();
  auto to = out.data();
  for (const std::int64_t row : order) to = std::copy_n(from.data() + static_cast<std::size_t>(row) * size, size, to);
  return out;
}

/// random_permutation(count) in pieces of `size`; the last may be shorter. Throws std::invalid_argument if size is 0.
std::vector<IntArray> batches(std::size_t count, std::size_t size, Generator& generator = default_generator());

/// Sequences as the rows of an array, filled up with `padding` at their ends. B sequences of up to T integers -> (B, T)
template <std::ranges::sized_range Sequence = std::vector<std::int64_t>>
IntArray pad(const std::vector<Sequence>& sequences, std::int64_t padding) {
  std::size_t longest = 0;
  for (const Sequence& sequence : sequences) longest = std::max<std::size_t>(longest, std::ranges::size(sequence));
  IntArray out = detail::padded(sequences.size(), longest, padding);
  for (std::size_t row = 0; row < sequences.size(); ++row)
    std::ranges::transform(sequences[row], out.data() + row * longest,
                           [](auto number) { return static_cast<std::int64_t>(number); });
  return out;
}

/// The lengths of sequences, as AttentionMask::valid_lens takes them. B sequences -> (B)
template <std::ranges::sized_range Sequence = std::vector<std::int64_t>>
IntArray lengths(const std::vector<Sequence>& sequences) {
  IntArray out(Shape{sequences.size()});
  std::ranges::transform(sequences, out.data(),
                         [](const Sequence& s) { return static_cast<std::int64_t>(std::ranges::size(s)); });
  return out;
}

/// The integers first, ..., last - 1, of shape (last - first). Throws std::invalid_argument if first > last.
IntArray arange(std::int64_t first, std::int64_t last);
/// The integers 0, ..., count - 1, such as positions. Throws std::invalid_argument if the count is negative.
inline IntArray arange(std::int64_t count) { return arange(0, count); }

}  // namespace tapegrad
