/// Draws arithmetic, elementwise functions and products.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "smooth.hpp"

namespace fuzz::steps {

inline Step power(Draw& d) {
  constexpr double exponents[] = {-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3};
  const double exponent = exponents[d.below(std::size(exponents))];
  const bool is_polynomial = exponent >= 0 && exponent == std::floor(exponent);
  return Step(
      {d.input()}, [=](const auto& v) { return tg::pow(v[0], exponent); }, is_polynomial ? Smooth{} : above_zero());
}

/// Draws matmul's operands, usually of matching shapes.
inline Step product(Draw& d) {
  const Input a = d.input();
  if (a.axes() == 0) return Step({a, d.input()}, [](const auto& v) { return tg::matmul(v[0], v[1]); });
  tg::Shape shape{a.shape.back()};
  const std::size_t columns = d.extent();
  if (d.chance(4)) {
    Draw::require_quick(a.size());
  } else {
    shape.push_back(columns);
    if (a.axes() > 2) {
      const tg::Shape leading = d.shape_for(tg::Shape(a.shape.begin(), a.shape.end() - 2));
      shape.insert(shape.begin(), leading.begin(), leading.end());
    }
    Draw::require_quick(a.size() * columns);
  }
  return Step({a, d.input(shape)}, [](const auto& v) {
    Draw::require_quick(v[0].size() * (v[1].dimension() > 0 ? v[1].shape().back() : 1));
    return tg::matmul(v[0], v[1]);
  });
}

inline Step linear(Draw& d) {
  const Input x = d.input();
  const std::size_t in = x.axes() > 0 ? x.shape.back() : 1, out = d.extent();
  Draw::require_quick(x.size() * out);
  const Input weight = d.input({out, in});
  if (d.chance(2)) return Step({x, weight}, [](const auto& v) { return tg::linear(v[0], v[1]); });
  return Step({x, weight, d.input({out})}, [](const auto& v) { return tg::linear(v[0], v[1], v[2]); });
}

/// Subscripts from "abcd"; each letter has one of the program's extents.
inline Step einsum(Draw& d) {
  std::array<std::size_t, 4> extents{};
  std::size_t work = 1;
  for (std::size_t& extent : extents) {
    extent = d.extent();
    if (work * extent > 4096) extent = 2;
    work *= std::max<std::size_t>(1, extent);
  }
  Draw::require_quick(work);
  const auto letters = [&](const std::string& among) {
    std::string chosen;
    for (const char letter : among)
      if (d.chance(2)) chosen.insert(d.chance(2) ? 0 : chosen.size(), 1, letter);
    return chosen;
  };
  const auto shape_of = [&](const std::string& of) {
    tg::Shape shape;
    for (const char letter : of) shape.push_back(extents[static_cast<std::size_t>(letter - 'a')]);
    return shape;
  };
  const std::string a = letters("abcd"), b = letters("abcd");
  std::string either = a;
  for (const char letter : b)
    if (either.find(letter) == either.npos) either += letter;
  const std::string equation = a + ',' + b + "->" + (d.chance(32) ? "z" : letters(either));
  return Step({d.input(shape_of(a)), d.input(shape_of(b))},
              [=](const auto& v) { return tg::einsum(equation, v[0], v[1]); });
}

inline Step clamp(Draw& d) {
  const double low = d.number(-2, 1), high = d.number(-1, 2);
  const std::size_t given = d.below(8);
  const auto min = given == 0 || given == 1 ? std::nullopt : std::optional(low),
             max = given == 0 || given == 2 ? std::nullopt : std::optional(high);
  return Step(
      {d.input()},
      [=]<class V>(const V& v) {
        using T = NumberOf<V>;
        const auto bound = [](std::optional<double> number) {
          return number ? std::optional(T(*number)) : std::nullopt;
        };
        return tg::clamp(v[0], bound(min), bound(max));
      },
      away_from({low, high}));
}

inline Step softplus(Draw& d) {
  const double beta = d.number(-3, 3), threshold = d.number(0, 30);
  return Step(
      {d.input()}, [=](const auto& v) { return tg::softplus(v[0], beta, threshold); },
      beta == 0 ? Smooth{} : away_from({threshold / beta}));
}

inline Step masked_fill(Draw& d) {
  const Input x = d.input();
  const tg::BoolArray mask = d.mask(d.shape_for(x.shape));
  const double number = d.number(-2, 2);
  if (d.chance(2)) return Step({x}, [=](const auto& v) { return tg::masked_fill(v[0], mask, number); });
  return Step({x, d.input(tg::Shape{})}, [=](const auto& v) { return tg::masked_fill(v[0], mask, v[1]); });
}

inline Step where(Draw& d) {
  const std::vector<Input> inputs = d.two_to_broadcast();
  const tg::BoolArray condition = d.mask(d.shape_for(inputs[d.below(2)].shape));
  return Step(inputs, [=](const auto& v) { return tg::where(condition, v[0], v[1]); });
}

inline Step dropout(Draw& d) {
  const double p = d.number(0, 1);
  const std::uint64_t key = d.key();
  const bool training = !d.chance(8);
  return Step({d.input()}, [=](const auto& v) {
    tg::Generator generator(key);
    return tg::dropout(v[0], p, training, generator);
  });
}

}  // namespace fuzz::steps
