/// Bytes as visible characters: the spelling of tokens in GPT-2's files (Radford et al. 2019).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

/// The character for each byte. Visible characters of ISO-8859-1 represent themselves. Other bytes, such as spaces and
/// control characters, map to U+0100 and up in order: a space is Ġ, a newline Ċ.
const std::array<char32_t, 256>& byte_characters();

/// Spells bytes with these characters, in UTF-8.
std::string spell(std::string_view bytes);

/// The bytes of such a spelling, or nothing if a character represents no byte.
std::optional<std::string> unspell(std::string_view characters);
