/// Shapes and axes: the arguments that name them.
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
  /// One integer of any type in braces.
  struct Item {
    std::ptrdiff_t value;  ///< the integer
    /// From any integer.
    template <std::integral I> constexpr Item(I i) : value(static_cast<std::ptrdiff_t>(i)) {}
  };

  IntList() = default;
  /// `{2, -1}`
  IntList(std::initializer_list<Item> items) {
    for (const Item& item : items) values_.push_back(item.value);
  }
  /// A list of one.
  template <std::integral I> IntList(I item) { values_.push_back(static_cast<std::ptrdiff_t>(item)); }
  /// From a Shape, a std::vector or another range of integers.
  template <class Integers>
  requires requires(const Integers& integers) {
    { *integers.begin() } -> std::convertible_to<std::ptrdiff_t>;
  }
  IntList(const Integers& integers) {
    for (auto integer : integers) values_.push_back(static_cast<std::ptrdiff_t>(integer));
  }

  std::size_t size() const { return values_.size(); }                    ///< how many there are
  bool empty() const { return values_.empty(); }                         ///< whether there is none
  std::ptrdiff_t operator[](std::size_t i) const { return values_[i]; }  ///< number i, unchecked
  auto begin() const { return values_.begin(); }                         ///< for loops over them
  auto end() const { return values_.end(); }                             ///< for loops over them

 private:
  xt::svector<std::ptrdiff_t, 4> values_;
};

using Extents = IntList;  ///< The extents of a shape; reshape works one that is -1 out.
using Axes = IntList;     ///< Axes by their numbers; negative ones count from the end.

/// Whether a reduction keeps the axes it sums over as axes of extent 1: `mean(x, {-1}, tg::keepdims)`.
enum class KeepDims : bool { no, yes };
inline constexpr KeepDims keepdims = KeepDims::yes;  ///< Short for KeepDims::yes.

/// "(2, 3)"; a scalar's is "()".
std::string to_string(const Shape& shape);
/// The same of extents or axes.
std::string to_string(const IntList& list);

/// How many elements an array of this shape has. The product is not checked: the shape is one that an array has.
std::size_t element_count(const Shape& shape);

}  // namespace tapegrad
