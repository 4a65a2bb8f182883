/// Bytes as characters that can be seen: how GPT-2's files spell tokens (Radford et al. 2019).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

/// The character that stands for each byte. Those of ISO-8859-1 that can be seen stand for themselves; the others, such
/// as spaces and control characters, are U+0100 and on in the bytes' order: a space is Ġ, the end of a line Ċ.
const std::array<char32_t, 256>& byte_characters();

/// The bytes as such characters, in UTF-8.
std::string spell(std::string_view bytes);

/// The bytes that are spelt so; nothing where a character stands for no byte.
std::optional<std::string> unspell(std::string_view characters);
