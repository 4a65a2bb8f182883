#include "columns.hpp"

#include <algorithm>

#include "text.hpp"

namespace examples {

namespace {

std::string spaces(const std::string& text, std::size_t columns) {
  return std::string(columns - std::min(columns, width(text)), ' ');
}

}  // namespace

std::size_t width(const std::string& text) { return character_count(text); }

std::size_t widest(const std::vector<std::string>& texts) {
  std::size_t most = 0;
  for (const std::string& text : texts) most = std::max(most, width(text));
  return most;
}

std::string flush_left(const std::string& text, std::size_t columns) { return text + spaces(text, columns); }
std::string flush_right(const std::string& text, std::size_t columns) { return spaces(text, columns) + text; }

}  // namespace examples
