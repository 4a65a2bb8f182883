/// Text as people write it: Unicode characters, from files and back to the terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A text as Unicode code points, one element for each, so that é or ß is one character and not two bytes.
using Text = std::u32string;

/// How a file writes its characters as bytes. In ISO-8859-1 a byte is the character of that number.
enum class Encoding { utf8, latin1 };

/// Takes the first character off a text in UTF-8; nothing, and the bytes stay, when they do not begin with one.
std::optional<char32_t> take_character(std::string_view& bytes);

/// How many characters a text in UTF-8 has.
std::size_t character_count(std::string_view utf8);

/// Throws std::invalid_argument for bytes that are not UTF-8, naming the first and where it stands.
Text decode(std::string_view bytes);

/// As UTF-8.
std::string encode(const Text& text);

/// Tells texts from others: FNV-1a, which is the same everywhere.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  std::string text() const { return std::to_string(hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

/// Replaces the capitals of the Latin, Greek and Cyrillic scripts by small letters.
Text to_lower(Text text);

/// Whether the character is a letter, in the scripts that the word lists are written in.
bool is_letter(char32_t c);

/// A whole file as UTF-8 with a \n at the end of every line, which in the file may be LF, CR or both. Throws
/// std::runtime_error naming the file, and the line when it is one, for a file that cannot be read, is empty or is not
/// text in that encoding. What is read may be a pipe.
std::string read_text(const std::filesystem::path& path, Encoding encoding = Encoding::utf8);

/// The lines of such a file, without their ends; line number n is element n - 1. Throws as read_text does.
std::vector<Text> read_lines(const std::filesystem::path& path, Encoding encoding = Encoding::utf8);

}  // namespace examples
