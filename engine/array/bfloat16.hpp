/// bfloat16, which halves the memory of float weights.
#pragma once

#include <bit>
#include <cstdint>

namespace tapegrad {

/// The upper half of a float: 1 bit of sign, 8 of exponent, 7 of fraction.
struct BFloat16 {
  std::uint16_t bits;  ///< as in memory and files

  /// Rounds to nearest, ties to even. Too large numbers become infinite, NaN stays NaN.
  static constexpr BFloat16 nearest(float x) {
    const auto whole = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = whole + 0x7fff + (whole >> 16 & 1);
    const std::uint32_t quiet = whole | 0x400000;  // the upper half alone might be infinity
    return {static_cast<std::uint16_t>((x != x ? quiet : rounded) >> 16)};
  }

  constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }  ///< Exactly.
};

}  // namespace tapegrad
