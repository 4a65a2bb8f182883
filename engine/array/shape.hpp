/// Shapes and axes as arguments.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <string>

#include "array.hpp"

namespace tapegrad {

/// A short list of extents, axes or repeats: `{2, -1}`, one integer, a Shape, or a mixture of integer types such as
/// `{shape[0], heads, -1}`.
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

  std::size_t size() const { return values_.size(); }                    ///< the number of integers
  bool empty() const { return values_.empty(); }                         ///< true for an empty list
  std::ptrdiff_t operator[](std::size_t i) const { return values_[i]; }  ///< number i, unchecked
  auto begin() const { return values_.begin(); }                         ///< for loops
  auto end() const { return values_.end(); }                             ///< for loops

 private:
  xt::svector<std::ptrdiff_t, 4> values_;
};

using Extents = IntList;  ///< The extents of a shape; reshape infers one that is -1.
using Axes = IntList;     ///< Axes; negative ones count from the end.

/// Keeps reduced axes with extent 1: `mean(x, {-1}, tg::keepdims)`.
enum class KeepDims : bool { no, yes };
inline constexpr KeepDims keepdims = KeepDims::yes;  ///< Short for KeepDims::yes.

/// "(2, 3)"; "()" for a scalar.
std::string to_string(const Shape& shape);
/// The same for extents or axes.
std::string to_string(const IntList& list);

/// The number of elements of an existing array, computed without an overflow check.
std::size_t element_count(const Shape& shape);

}  // namespace tapegrad
