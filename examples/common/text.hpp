/// Reads, decodes and encodes Unicode text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// Unicode code points, one per element: é or ß is one character, not two bytes.
using Text = std::u32string;

/// A file's encoding. latin1 is ISO-8859-1: each byte is the code point of its character.
enum class Encoding { utf8, latin1 };

/// Removes and returns the first character of UTF-8 text. Returns nothing and leaves the bytes if they are invalid.
std::optional<char32_t> take_character(std::string_view& bytes);

/// The number of characters in UTF-8 text.
std::size_t character_count(std::string_view utf8);

/// Decodes UTF-8. Throws std::invalid_argument for invalid bytes, naming the first one and its position.
Text decode(std::string_view bytes);

/// Encodes as UTF-8.
std::string encode(const Text& text);

/// A hash to recognize texts: FNV-1a, equal on all platforms.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  std::string text() const { return std::to_string(hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

/// Converts Latin, Greek and Cyrillic letters to lowercase.
Text to_lower(Text text);

/// True for letters of the scripts used in the word lists.
bool is_letter(char32_t c);

/// Reads a whole file or pipe as UTF-8 and converts line ends (LF, CR or CRLF) to \n. Throws std::runtime_error, naming
/// the file and for invalid UTF-8 the line, if the file is unreadable, empty or not text in that encoding.
std::string read_text(const std::filesystem::path& path, Encoding encoding = Encoding::utf8);

/// Reads a file's lines without line ends; line n is element n - 1. Throws like read_text.
std::vector<Text> read_lines(const std::filesystem::path& path, Encoding encoding = Encoding::utf8);

}  // namespace examples
