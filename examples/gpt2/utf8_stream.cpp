#include "utf8_stream.hpp"

#include <algorithm>
#include <utility>

#include "../common/text.hpp"

namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

/// True if the bytes are a proper prefix of a character. It suffices to try continuing with the smallest and the
/// largest continuation bytes.
bool begins_character(std::string_view bytes) {
  return std::ranges::any_of(std::string_view("\x80\xbf"), [&](char next) {
    const std::string begin = std::string(bytes) + std::string(3, next);
    std::string_view rest = begin;
    return examples::take_character(rest) && rest.size() < 3;
  });
}

/// The length of the longest prefix that starts a character. Requires bytes without a complete first character.
std::size_t begun(std::string_view bytes) {
  std::size_t count = 0;
  while (count < bytes.size() && begins_character(bytes.substr(0, count + 1))) ++count;
  return count;
}

}  // namespace

std::string Utf8Stream::put(std::string_view bytes) {
  held_ += bytes;
  std::string text;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const std::string_view before = rest;
    if (examples::take_character(rest)) {
      text += before.substr(0, before.size() - rest.size());
      continue;
    }
    const std::size_t count = begun(rest);
    if (count == rest.size()) break;
    text += kReplacement;
    rest.remove_prefix(std::max<std::size_t>(1, count));
  }
  held_ = std::string(rest);
  return text;
}

std::string Utf8Stream::end() { return std::exchange(held_, "").empty() ? "" : kReplacement; }
