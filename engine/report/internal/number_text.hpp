/// Numbers as text. For the library's own sources.
#pragma once

#include <charconv>
#include <cmath>
#include <string>

namespace tapegrad::detail {

/// As printf writes it with so many digits, "%g" in chars_format::general and "%f" in fixed, with a point in every
/// locale; NaN as "NaN".
inline std::string number_text(double number, std::chars_format format, int digits) {
  if (std::isnan(number)) return "NaN";
  char text[352];  // room for the largest double in fixed
  return {text, std::to_chars(text, text + sizeof text, number, format, digits).ptr};
}

}  // namespace tapegrad::detail
