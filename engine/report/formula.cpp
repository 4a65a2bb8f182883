#include "internal/formula.hpp"

#include <cmath>
#include <cstdio>
#include <string_view>

namespace tapegrad::detail {
namespace {

// As it stands in a formula: with the minus sign of mathematics, and in brackets where it is negative.
std::string number_text(double number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%g", std::abs(number));
  return std::signbit(number) ? std::string("(−") + digits + ')' : digits;
}

bool is_of_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// The text with the number in place of every c that is a word of its own.
std::string with_number(std::string_view text, double number) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || !is_of_word(text[i - 1]), ends = i + 1 == text.size() || !is_of_word(text[i + 1]);
    if (text[i] == 'c' && begins && ends)
      out += number_text(number);
    else
      out += text[i];
  }
  return out;
}

}  // namespace

Formula formula_of(const Operation& operation) {
  constexpr std::string_view separator = "; ";
  std::vector<std::string> parts;
  for (std::string_view rest = operation.formula; !rest.empty();) {
    const std::size_t end = rest.find(separator);
    parts.push_back(with_number(rest.substr(0, end), operation.c));
    rest = end == rest.npos ? std::string_view() : rest.substr(end + separator.size());
  }
  if (parts.empty()) return {};
  return {parts.front(), {parts.begin() + 1, parts.end()}};
}

}  // namespace tapegrad::detail
