/// Makes text from files and command lines safe to print in messages and tables.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// Escapes control characters, bidirectional formatting characters and invalid UTF-8 (\x1b, \n, \u202e), so a terminal
/// cannot interpret them. Truncates longer text to `max_length` characters including "…". All external text passes
/// through this function before it reaches the terminal.
std::string printable(std::string_view text, std::size_t max_length = std::numeric_limits<std::size_t>::max());

/// Like printable, but keeps line ends and tabs.
std::string printable_text(std::string_view text);

/// A token as a label: printable, with ␣ for spaces, ↵ for line ends and → for tabs.
std::string visible(std::string_view token);
std::vector<std::string> visible(const std::vector<std::string>& tokens);

/// Quotes part of a file or an option for a message: printable, at most 60 characters.
std::string in_quotes(std::string_view text);

/// Lists names for a message: "a, b, c", at most 10, then "... and N more".
std::string listed(const std::vector<std::string>& names);

/// Any message as one printable line. Long messages lose their middle.
std::string one_line(std::string_view message);

}  // namespace examples
