/// Arrays from numbers in braces, std::vector and other ranges.
///
///     tg::int_array({{1, 2, 3}, {4, 5, 6}})       // (2, 3)
///     tg::int_array(ids)                          // a std::vector<int>: (n)
///     tg::array<float>(pixels, {28, 28})          // n numbers in row-major order under a shape
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <ranges>
#include <type_traits>
#include <vector>

#include "array.hpp"
#include "shape.hpp"

namespace tapegrad {
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

/// An array from nested braces: `array<T>({{7}})` has the shape (1, 1). Throws std::invalid_argument if rows differ in
/// length.
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
