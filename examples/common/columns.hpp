/// Texts lined up in columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace examples {

/// How many columns a text in UTF-8 takes on the screen, and the widest of several.
std::size_t width(const std::string& text);
std::size_t widest(const std::vector<std::string>& texts);

/// Filled up with spaces on the right, or on the left; wider texts stay as they are.
std::string flush_left(const std::string& text, std::size_t columns);
std::string flush_right(const std::string& text, std::size_t columns);

}  // namespace examples
