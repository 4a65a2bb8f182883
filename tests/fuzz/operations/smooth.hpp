/// Conditions for operations to be differentiable.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "program.hpp"

namespace fuzz {

inline constexpr double kGap = 2e-4;  // distance from a kink, beyond finite differences and the rounding of floats

inline bool away(const tg::Array<double>& x, double kink) {
  return std::ranges::none_of(x, [&](double number) { return std::abs(number - kink) < kGap; });
}

inline Smooth away_from(std::vector<double> kinks, std::size_t input = 0) {
  return [=](const Values<double>& v) {
    return std::ranges::all_of(kinks, [&](double kink) { return away(v[input].value(), kink); });
  };
}

/// For inputs far above 0, or far from 0 on either side.
inline Smooth above_zero(std::size_t input = 0) {
  return [=](const Values<double>& v) {
    return std::ranges::all_of(v[input].value(), [](double number) { return number > 0.05; });
  };
}
inline Smooth off_zero(std::size_t input) {
  return [=](const Values<double>& v) {
    return std::ranges::all_of(v[input].value(), [](double number) { return std::abs(number) > 0.05; });
  };
}

/// True if no other element is near the maximum over the axes.
inline bool has_clear_maximum(const tg::Tensor<double>& x, const tg::Axes& axes) {
  const tg::Tensor<double> largest = tg::amax(x, axes, tg::keepdims), distance = largest - x;
  const auto near = std::ranges::count_if(distance.value(), [](double number) { return number < kGap; });
  return static_cast<std::size_t>(near) == largest.size();
}

/// True if no two elements along the axis are close.
inline bool has_order(const tg::Tensor<double>& x, std::ptrdiff_t axis) {
  const std::size_t n = x.dimension() == 0 ? 1 : Draw::extent_of({0, x.shape()}, axis);
  if (n < 2) return true;
  const tg::Tensor<double> sorted = tg::topk(x, n, axis).values;
  const tg::Tensor<double> steps = tg::narrow(sorted, axis, 0, n - 1) - tg::narrow(sorted, axis, 1, n - 1);
  return std::ranges::all_of(steps.value(), [](double step) { return step > kGap; });
}

}  // namespace fuzz
