#include "printable.hpp"

#include <algorithm>
#include <cstdio>

#include "progress.hpp"
#include "text.hpp"

namespace examples {

namespace {

/// True for characters a terminal interprets, including those affecting text direction.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

std::string escaped(char32_t c) {
  if (c == U'\n') return "\\n";
  if (c == U'\t') return "\\t";
  if (c == U'\r') return "\\r";
  char text[12];
  std::snprintf(text, sizeof text, c < 0x100 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(c));
  return text;
}

/// The start of the character containing the byte at `place`.
std::size_t character_begin(const std::string& text, std::size_t place) {
  while (place > 0 && (text[place] & 0xc0) == 0x80) --place;
  return place;
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_length) {
  std::string shown;
  std::size_t last = 0;  // start of the last character in `shown`
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == max_length) return shown.substr(0, last) + "…";
    last = shown.size();
    const std::string_view before = text;
    const auto c = take_character(text);
    if (!c) text.remove_prefix(1);
    if (!c || is_control(*c))
      shown += escaped(c.value_or(static_cast<unsigned char>(before[0])));
    else
      shown += before.substr(0, before.size() - text.size());
  }
  return shown;
}

std::string printable_text(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t kept = std::min(text.find_first_of("\n\t"), text.size());
    shown += printable(text.substr(0, kept));
    shown += text.substr(kept, 1);
    text.remove_prefix(std::min(kept + 1, text.size()));
  }
  return shown;
}

std::string visible(std::string_view token) {
  std::string shown;
  for (const char c : token) {
    if (c == ' ')
      shown += "␣";
    else if (c == '\n')
      shown += "↵";
    else if (c == '\t')
      shown += "→";
    else
      shown += c;
  }
  return printable(shown);
}

std::vector<std::string> visible(const std::vector<std::string>& tokens) {
  std::vector<std::string> shown;
  for (const std::string& token : tokens) shown.push_back(visible(token));
  return shown;
}

std::string in_quotes(std::string_view text) { return '\'' + printable(text, 60) + '\''; }

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t max_names = 10;
  std::string list;
  for (std::size_t i = 0; i < std::min(max_names, names.size()); ++i)
    list += (list.empty() ? "" : ", ") + printable(names[i], 30);
  if (names.size() > max_names) list += ", ... and " + with_commas(names.size() - max_names) + " more";
  return list;
}

std::string one_line(std::string_view message) {
  constexpr std::size_t first = 500, last = 300;  // the end often names the given value
  std::string line(message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line = printable(line);
  if (line.size() <= first + last) return line;
  const std::size_t cut = character_begin(line, first), resumed = character_begin(line, line.size() - last);
  return line.substr(0, cut) + " ... " + line.substr(resumed);
}

}  // namespace examples
