/// Shapes and axes: the arguments that name them, and the arithmetic on them.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <string>

#include "array.hpp"

namespace tapegrad {

/// A short list of integers in an argument: extents, axes or repeats. Takes `{2, -1}`, one integer, a Shape, and any
/// mixture of integer types, so that `{shape[0], heads, -1}` needs no casts.
class IntList {
 public:
  struct Item {
    std::ptrdiff_t value;
    template <std::integral I> constexpr Item(I i) : value(static_cast<std::ptrdiff_t>(i)) {}
  };
  using Container = xt::svector<std::ptrdiff_t, 4>;

  IntList() = default;
  IntList(std::initializer_list<Item> items) {
    for (const Item& item : items) values_.push_back(item.value);
  }
  template <std::integral I> IntList(I item) { values_.push_back(static_cast<std::ptrdiff_t>(item)); }
  template <class Integers>
  requires requires(const Integers& integers) {
    { *integers.begin() } -> std::convertible_to<std::ptrdiff_t>;
  }
  IntList(const Integers& integers) {
    for (auto integer : integers) values_.push_back(static_cast<std::ptrdiff_t>(integer));
  }

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  std::ptrdiff_t operator[](std::size_t i) const { return values_[i]; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  Container values_;
};

using Extents = IntList;
using Axes = IntList;

/// Whether a reduction keeps the axes it sums over as axes of extent 1: `mean(x, {-1}, tg::keepdims)`.
enum class KeepDims : bool { no, yes };
inline constexpr KeepDims keepdims = KeepDims::yes;

/// "(2, 3)"; a scalar's is "()".
std::string to_string(const Shape& shape);
std::string to_string(const IntList& list);

/// How many elements an array of this shape has.
std::size_t element_count(const Shape& shape);

namespace detail {

using Strides = xt::svector<std::ptrdiff_t, 4>;

/// The axis as a number from 0: negative ones count from the end. Throws std::invalid_argument naming `operation` when
/// there is no such axis in an array of `dimension` axes.
std::size_t normalize_axis(const char* operation, std::ptrdiff_t axis, std::size_t dimension);

/// NumPy's broadcasting: shapes are aligned at their last axes and axes of extent 1 stretch to the other's extent.
bool broadcast_together(const Shape& a, const Shape& b);

/// The last axis, counted from the end, in which two shapes do not broadcast together; 0 when they do.
std::ptrdiff_t differing_axis(const Shape& a, const Shape& b);

/// The shape that both broadcast to. Throws std::invalid_argument naming `operation` and both shapes.
Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b);

/// The index of the element that is `flat` places behind the first.
Shape index_of(std::size_t flat, const Shape& shape);

/// Whether an array of shape `from` broadcasts to exactly `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

/// Strides, counted in elements, of a row-major array.
Strides contiguous_strides(const Shape& shape);

/// Strides that read an array of shape `from` as if it had the shape `to` that it broadcasts to: 0 where it stretches.
Strides broadcast_strides(const Shape& from, const Shape& to);

}  // namespace detail

}  // namespace tapegrad
