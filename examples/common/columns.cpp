#include "columns.hpp"

#include <algorithm>

#include "text.hpp"

namespace examples {

namespace {

struct Range {
  char32_t first, last;
};

/// Zero-width characters: combining accents, joiners, variation selectors.
constexpr Range combining[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x64b, 0x65f},
                               {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff},
                               {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};

/// Double-width characters: East Asian scripts and punctuation, full-width forms, emoji.
constexpr Range wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},  {0xac00, 0xd7a3},
                          {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff01, 0xff60},  {0xffe0, 0xffe6},
                          {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

std::size_t columns_of(char32_t c) {
  const auto contains_c = [c](const Range& range) { return range.first <= c && c <= range.last; };
  if (std::ranges::any_of(combining, contains_c)) return 0;
  return std::ranges::any_of(wide, contains_c) ? 2 : 1;
}

std::string spaces(const std::string& text, std::size_t columns) {
  return std::string(columns - std::min(columns, width(text)), ' ');
}

}  // namespace

std::size_t width(const std::string& text) {
  std::size_t columns = 0;
  for (const char32_t c : decode(text)) columns += columns_of(c);
  return columns;
}

std::size_t widest(const std::vector<std::string>& texts) {
  std::size_t max_width = 0;
  for (const std::string& text : texts) max_width = std::max(max_width, width(text));
  return max_width;
}

std::string flush_left(const std::string& text, std::size_t columns) { return text + spaces(text, columns); }
std::string flush_right(const std::string& text, std::size_t columns) { return spaces(text, columns) + text; }

}  // namespace examples
