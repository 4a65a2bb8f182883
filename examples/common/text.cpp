#include "text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace examples {

std::optional<char32_t> take_character(std::string_view& bytes) {
  if (bytes.empty()) return {};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (bytes.size() < length || (byte(0) >= 0x80 && byte(0) < 0xc2) || byte(0) > 0xf4) return {};

  char32_t c = length == 1 ? byte(0) : byte(0) & (0x7f >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 0b10) return {};
    c = c << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};  // by length; smaller values are overlong
  const bool surrogate = c >= 0xd800 && c <= 0xdfff;
  if (c < smallest[length] || surrogate || c > 0x10ffff) return {};

  bytes.remove_prefix(length);
  return c;
}

std::size_t character_count(std::string_view utf8) {  // count the bytes other than continuation bytes
  const auto begins = [](char byte) { return (byte & 0xc0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), begins));
}

namespace {

/// The error message for bytes that begin with no valid character.
std::string not_utf8(std::string_view bytes, std::size_t character) {
  char byte[8];
  std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned char>(bytes[0]));
  return "expected UTF-8, got the byte " + std::string(byte) + " at character " + std::to_string(character);
}

}  // namespace

Text decode(std::string_view bytes) {
  Text text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto c = take_character(bytes);
    if (!c) throw std::invalid_argument(not_utf8(bytes, text.size() + 1));
    text.push_back(*c);
  }
  return text;
}

std::string encode(const Text& text) {
  std::string bytes;
  bytes.reserve(text.size());
  const auto put = [&](char32_t byte) { bytes.push_back(static_cast<char>(byte)); };
  for (const char32_t c : text) {
    if (c < 0x80) {
      put(c);
      continue;
    }
    const int following = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    put((0xff00u >> (following + 1) & 0xffu) | c >> 6 * following);  // 110xxxxx, 1110xxxx or 11110xxx
    for (int i = following - 1; i >= 0; --i) put(0x80u | (c >> 6 * i & 0x3fu));
  }
  return bytes;
}

bool is_letter(char32_t c) {
  if (c < 0x80) return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
  return c >= 0xc0 && c != U'×' && c != U'÷' && !(c >= 0x2000 && c <= 0x2bff);  // exclude punctuation and symbols
}

Text to_lower(Text text) {
  const auto lower = [](char32_t c) -> char32_t {
    const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
    if (within(U'A', U'Z') || (within(0xc0, 0xde) && c != U'×')) return c + 0x20;  // Latin
    if (within(0x391, 0x3a9) || within(0x410, 0x42f)) return c + 0x20;             // Greek, Cyrillic
    if (within(0x400, 0x40f)) return c + 0x50;                                     // Cyrillic: Ѐ to Џ
    if (c == U'Ÿ') return U'ÿ';
    // Latin Extended-A has pairs, capital first. Capitals are even in two ranges and odd in two others.
    if (within(0x100, 0x137) || within(0x14a, 0x177)) return c | 1;
    if (within(0x139, 0x148) || within(0x179, 0x17e)) return c + c % 2;
    return c;
  };
  std::transform(text.begin(), text.end(), text.begin(), lower);
  return text;
}

namespace {

std::string read_file(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& reason) { return std::runtime_error(path.string() + ": " + reason); };
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) throw refuse("expected a text file, got a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw refuse(std::string("cannot be opened: ") + std::strerror(errno));

  std::string bytes;
  if (const auto size = std::filesystem::file_size(path, none); !none) bytes.reserve(size + 1);  // see end_lines
  std::vector<char> buffer(1 << 16);
  do {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const std::string_view part(buffer.data(), static_cast<std::size_t>(file.gcount()));
    if (part.find('\0') != part.npos) throw refuse("expected a text file, got a zero byte");
    bytes += part;
  } while (file);
  if (file.bad()) throw refuse(std::string("cannot be read: ") + std::strerror(errno));
  if (bytes.empty()) throw refuse("expected a text file, got an empty one");
  return bytes;
}

std::string from_latin1(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + 1);
  for (const char byte : bytes) {
    const auto c = static_cast<unsigned char>(byte);
    if (c >= 0x80) text.push_back(static_cast<char>(0xc0 | c >> 6));
    text.push_back(static_cast<char>(c < 0x80 ? c : 0x80 | (c & 0x3f)));
  }
  return text;
}

/// Makes every end of a line, CR, LF or both, a \n, and ends the last line. In place, since texts may be long.
void end_lines(std::string& text) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < text.size(); ++from) {
    const bool carriage_return = text[from] == '\r';
    if (carriage_return && from + 1 < text.size() && text[from + 1] == '\n') ++from;
    text[to++] = carriage_return ? '\n' : text[from];
  }
  text.resize(to);
  if (!text.ends_with('\n')) text += '\n';
}

void require_utf8(const std::string& text, const std::filesystem::path& path) {
  std::size_t line = 1, character = 1;
  for (std::string_view rest = text; !rest.empty();) {
    const auto c = take_character(rest);
    if (!c)
      throw std::runtime_error(path.string() + ':' + std::to_string(line) + ": " + not_utf8(rest, character) +
                               "; for ISO-8859-1 files, use --encoding latin1");
    line += c == U'\n';
    character = c == U'\n' ? 1 : character + 1;
  }
}

}  // namespace

std::string read_text(const std::filesystem::path& path, Encoding encoding) {
  std::string text = read_file(path);
  if (encoding == Encoding::latin1)
    text = from_latin1(text);
  else if (text.starts_with("\xef\xbb\xbf"))  // a byte order mark
    text.erase(0, 3);
  end_lines(text);
  require_utf8(text, path);
  return text;
}

std::vector<Text> read_lines(const std::filesystem::path& path, Encoding encoding) {
  const std::string text = read_text(path, encoding);
  std::vector<Text> lines;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    lines.push_back(decode(rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace examples
