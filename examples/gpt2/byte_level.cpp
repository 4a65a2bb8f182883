#include "byte_level.hpp"

#include "../common/text.hpp"

const std::array<char32_t, 256>& byte_characters() {
  static const auto characters = [] {
    std::array<char32_t, 256> all{};
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < all.size(); ++byte) {
      const bool seen = (byte >= U'!' && byte <= U'~') || (byte >= U'¡' && byte <= U'¬') || byte >= U'®';
      all[byte] = seen ? byte : next++;
    }
    return all;
  }();
  return characters;
}

std::string spell(std::string_view bytes) {
  examples::Text characters;
  for (const char byte : bytes) characters += byte_characters()[static_cast<unsigned char>(byte)];
  return examples::encode(characters);
}

std::optional<std::string> unspell(std::string_view characters) {
  static const auto byte_of = [] {
    std::array<int, 0x144> all;  // up to U+0143
    all.fill(-1);
    for (std::size_t byte = 0; byte < 256; ++byte) all[byte_characters()[byte]] = static_cast<int>(byte);
    return all;
  }();
  std::string bytes;
  while (!characters.empty()) {
    const auto c = examples::take_character(characters);
    if (!c || *c >= byte_of.size() || byte_of[*c] < 0) return {};
    bytes += static_cast<char>(byte_of[*c]);
  }
  return bytes;
}
