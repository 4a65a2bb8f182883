/// Constants from numbers.
#pragma once

#include <ranges>

#include "../array/array.hpp"
#include "tensor.hpp"

namespace tapegrad {

/// A constant from numbers in braces, like `array`: `tg::tensor({{1, 2}, {3, 4}})`.
template <class T = float> Tensor<T> tensor(const detail::Braces<T>& numbers) { return numbers.array(); }
/// The n numbers of a range, of shape (n).
template <class T = float, std::ranges::sized_range Numbers> Tensor<T> tensor(const Numbers& numbers) {
  return array<T>(numbers);
}
/// The numbers of a range in row-major order. Throws std::invalid_argument if their count does not fit the shape.
template <class T = float, std::ranges::sized_range Numbers>
Tensor<T> tensor(const Numbers& numbers, const Shape& shape) {
  return array<T>(numbers, shape);
}

}  // namespace tapegrad
