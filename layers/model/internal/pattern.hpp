/// Patterns of names. For the library's own sources.
#pragma once

#include <cstddef>
#include <string_view>

namespace tapegrad::detail {

/// True if the text matches `pattern`, with * for any text.
inline bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (std::size_t skipped = 0; skipped <= text.size(); ++skipped)
    if (matches(pattern, text.substr(skipped))) return true;
  return false;
}

}  // namespace tapegrad::detail
