#include "internal/formula.hpp"

#include <cmath>
#include <string_view>

#include "internal/number_text.hpp"

namespace tapegrad::detail {
namespace {

// A number in a formula: with the mathematical minus sign, in parentheses if negative.
std::string in_formula(double number) {
  const std::string digits = number_text(std::abs(number), std::chars_format::general, 6);
  return std::signbit(number) ? "(−" + digits + ')' : digits;
}

bool is_word_character(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// Replaces each word "c" by the number.
std::string with_number(std::string_view text, double number) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i == 0 || !is_word_character(text[i - 1]),
               ends = i + 1 == text.size() || !is_word_character(text[i + 1]);
    if (text[i] == 'c' && begins && ends)
      out += in_formula(number);
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
    const std::string_view part = rest.substr(0, end);
    parts.push_back(std::isnan(operation.c) ? std::string(part) : with_number(part, operation.c));
    rest = end == rest.npos ? std::string_view() : rest.substr(end + separator.size());
  }
  if (parts.empty()) return {};
  return {parts.front(), {parts.begin() + 1, parts.end()}};
}

}  // namespace tapegrad::detail
