/// Numbers as text. For the library's own sources.
#pragma once

#include <charconv>
#include <cmath>
#include <string>

namespace tapegrad::detail {

/// Like printf with "%g" (chars_format::general) or "%f" (fixed), but with a point in every locale and NaN as "NaN".
inline std::string number_text(double number, std::chars_format format, int digits) {
  if (std::isnan(number)) return "NaN";
  char text[352];  // room for the largest double in fixed
  return {text, std::to_chars(text, text + sizeof text, number, format, digits).ptr};
}

}  // namespace tapegrad::detail
