/// Arrays: xtensor containers over the pool, their shapes, and arrays from braces, std::vector and other ranges.
///
///     tg::int_array({{1, 2, 3}, {4, 5, 6}})       // (2, 3)
///     tg::int_array(ids)                          // a std::vector<int>: (n)
///     tg::array<float>(pixels, {28, 28})          // n numbers in row-major order under a shape
#pragma once

#if __has_include(<xtensor/containers/xarray.hpp>)  // xtensor 0.26 sorted its headers into folders
#include <xtensor/containers/xarray.hpp>
#else
#include <xtensor/xarray.hpp>
#endif

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pool.hpp"

namespace tapegrad {

using Shape = xt::dynamic_shape<std::size_t>;  ///< Extents of an array, outermost axis first.

/// A dense row-major array of any number of axes. Converts from and to any xtensor expression. Its own constructors,
/// reshape and resize do not check the product of extents; the library's functions do.
template <class T>
using Array = xt::xarray_container<xt::uvector<T, PoolAllocator<T>>, xt::layout_type::row_major, Shape>;

using IntArray = Array<std::int64_t>;  ///< Indices: token ids, labels, lengths.
using BoolArray = Array<bool>;         ///< A mask, as masked_fill and where take it.

template <class T> using Value = std::shared_ptr<const Array<T>>;  ///< A shared immutable array.

/// Allocates a shared array in the pool.
template <class T, class... Arguments> std::shared_ptr<Array<T>> make_value(Arguments&&... arguments) {
  return detail::make_pooled<Array<T>>(std::forward<Arguments>(arguments)...);
}

namespace detail {
template <class I>
concept Integer = std::integral<std::remove_cvref_t<I>> && !std::same_as<std::remove_cvref_t<I>, bool>;
}

/// Extents, axes or repeats: one integer, a Shape, or integers of different types such as `{shape[0], heads, -1}`.
class IntList {
 public:
  /// One integer of any type in braces.
  struct Item {
    std::ptrdiff_t value;                                                                        ///< the integer
    template <detail::Integer I> constexpr Item(I i) : value(static_cast<std::ptrdiff_t>(i)) {}  ///< From any integer.
  };

  IntList() = default;
  /// `{2, -1}`
  IntList(std::initializer_list<Item> items) {
    for (const Item& item : items) values_.push_back(item.value);
  }
  /// One integer.
  template <detail::Integer I> IntList(I item) : IntList({Item(item)}) {}
  /// From a Shape, a std::vector or another range of integers.
  template <class Integers>
  requires requires(const Integers& integers) {
    { *integers.begin() } -> detail::Integer;
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

std::string to_string(const Shape& shape);   ///< "(2, 3)"; "()" for a scalar.
std::string to_string(const IntList& list);  ///< The same for extents or axes.

std::size_t element_count(const Shape& shape);  ///< The number of elements of an array, without an overflow check.

namespace detail {

/// Numbers in nested braces, one level for each axis. Throws std::invalid_argument if rows differ in shape.
template <class T> class Braces {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number> Braces(Number number) : numbers_{static_cast<T>(number)} {}
  Braces(std::initializer_list<Braces> rows);

  Array<T> array() const;

 private:
  Shape shape_;
  std::vector<T> numbers_;
};

/// Throws std::invalid_argument unless a shape has `count` elements.
void require_count(const char* operation, std::size_t count, const Shape& shape);

}  // namespace detail

/// An array from nested braces: `array<T>({{7}})` is (1, 1). Throws std::invalid_argument if rows differ in length.
template <class T> Array<T> array(const detail::Braces<T>& numbers) { return numbers.array(); }

/// The numbers of a range in row-major order. Throws std::invalid_argument if their count does not fit the shape.
template <class T, std::ranges::sized_range Numbers> Array<T> array(const Numbers& numbers, const Shape& shape) {
  detail::require_count("array", std::ranges::size(numbers), shape);
  Array<T> out(shape);
  std::ranges::transform(numbers, out.data(), [](const auto& number) { return static_cast<T>(number); });
  return out;
}
/// The same, of shape (n).
template <class T, std::ranges::sized_range Numbers> Array<T> array(const Numbers& numbers) {
  return array<T>(numbers, Shape{std::ranges::size(numbers)});
}

/// Ids, labels or lengths from nested braces: `embedding(tg::int_array({{id}}))`.
inline IntArray int_array(const detail::Braces<std::int64_t>& numbers) { return numbers.array(); }
/// The integers of a range, of shape (n).
template <std::ranges::sized_range Numbers> IntArray int_array(const Numbers& numbers) {
  return array<std::int64_t>(numbers);
}
/// The integers of a range in row-major order. Throws like array.
template <std::ranges::sized_range Numbers> IntArray int_array(const Numbers& numbers, const Shape& shape) {
  detail::require_count("int_array", std::ranges::size(numbers), shape);
  return array<std::int64_t>(numbers, shape);
}

}  // namespace tapegrad
