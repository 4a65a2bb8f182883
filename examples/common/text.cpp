#include "text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace examples {

namespace {

/// Takes one character off the front of the bytes; nothing when they do not start with one.
std::optional<char32_t> take_utf8(std::string_view& bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const std::size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (bytes.size() < length || (byte(0) >= 0x80 && byte(0) < 0xc2) || byte(0) > 0xf4) return {};

  char32_t c = length == 1 ? byte(0) : byte(0) & (0x7f >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 0b10) return {};
    c = c << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};  // below it, fewer bytes would have done
  const bool surrogate = c >= 0xd800 && c <= 0xdfff;
  if (c < smallest[length] || surrogate || c > 0x10ffff) return {};

  bytes.remove_prefix(length);
  return c;
}

std::string read_file(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& reason) {
    return std::runtime_error(path.string() + ": expected a text file, " + reason);
  };
  if (std::filesystem::is_directory(path)) throw refuse("given a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw refuse(std::string("but it cannot be opened: ") + std::strerror(errno));
  std::ostringstream content;
  content << file.rdbuf();
  std::string bytes = std::move(content).str();
  if (bytes.empty()) throw refuse("given an empty one");
  return bytes;
}

}  // namespace

Text decode(std::string_view bytes, Encoding encoding) {
  if (encoding == Encoding::latin1) {
    Text text(bytes.size(), U'\0');
    std::transform(bytes.begin(), bytes.end(), text.begin(), [](char c) { return static_cast<unsigned char>(c); });
    return text;
  }
  Text text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto c = take_utf8(bytes);
    if (!c) {
      std::ostringstream message;
      message << "expected UTF-8, given the byte 0x" << std::hex << std::setw(2) << std::setfill('0')
              << static_cast<int>(static_cast<unsigned char>(bytes[0])) << std::dec << " as character "
              << text.size() + 1;
      throw std::invalid_argument(message.str());
    }
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
  return c >= 0xc0 && c != U'×' && c != U'÷' && !(c >= 0x2000 && c <= 0x2bff);  // the last are signs
}

Text to_lower(Text text) {
  const auto lower = [](char32_t c) -> char32_t {
    const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
    if (within(U'A', U'Z') || (within(0xc0, 0xde) && c != U'×')) return c + 0x20;  // Latin
    if (within(0x391, 0x3a9) || within(0x410, 0x42f)) return c + 0x20;             // Greek, Cyrillic
    if (within(0x400, 0x40f)) return c + 0x50;                                     // Cyrillic: Ѐ to Џ
    if (c == U'Ÿ') return U'ÿ';
    // Latin of central Europe stands in pairs, capital first: even numbers in two stretches, odd in two others.
    if (within(0x100, 0x137) || within(0x14a, 0x177)) return c | 1;
    if (within(0x139, 0x148) || within(0x179, 0x17e)) return c + c % 2;
    return c;
  };
  std::transform(text.begin(), text.end(), text.begin(), lower);
  return text;
}

std::vector<Text> read_lines(const std::filesystem::path& path, Encoding encoding) {
  const std::string content = read_file(path);
  std::string_view rest = content;
  if (encoding == Encoding::utf8 && rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // a byte order mark

  std::vector<Text> lines;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    try {
      lines.push_back(decode(line, encoding));
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error(path.string() + ':' + std::to_string(lines.size() + 1) + ": " + error.what() +
                               "; a file in ISO-8859-1 is read with --encoding latin1");
    }
  }
  return lines;
}

}  // namespace examples
