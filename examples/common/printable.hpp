/// Text from files and command lines as it may stand in messages and tables.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// The text with control characters, those that change the direction of writing, and bytes that are not UTF-8 escaped
/// (\x1b, \n, \u202e), so that a terminal shows them instead of obeying. Of a longer text, the first characters and
/// "…": `most` in all. It is the one way by which what others wrote reaches the terminal.
std::string printable(std::string_view text, std::size_t most = std::numeric_limits<std::size_t>::max());

/// A text of several lines, printable but for its ends of lines and tabs.
std::string printable_text(std::string_view text);

/// A token as a label: printable, with ␣ for spaces, ↵ for ends of lines and → for tabs.
std::string visible(std::string_view token);
std::vector<std::string> visible(const std::vector<std::string>& tokens);

/// A part of a file or an option in a message: printable, of limited length, between quotes.
std::string in_quotes(std::string_view text);

/// Names in a message: "a, b, c", and how many more there are when they are too many to read.
std::string listed(const std::vector<std::string>& names);

/// A message of any origin as one line, printable; of a long one its begin and its end.
std::string one_line(std::string_view message);

}  // namespace examples
