/// Aligns text in columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace examples {

/// The number of terminal columns of UTF-8 text, and the maximum over several texts.
std::size_t width(const std::string& text);
std::size_t widest(const std::vector<std::string>& texts);

/// Pads text with spaces on the right or on the left. Wider text is unchanged.
std::string flush_left(const std::string& text, std::size_t columns);
std::string flush_right(const std::string& text, std::size_t columns);

}  // namespace examples
