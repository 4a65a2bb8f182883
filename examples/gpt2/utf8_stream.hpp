/// Converts a stream of bytes to valid UTF-8.
#pragma once

#include <string>
#include <string_view>

/// Holds back incomplete characters, since a token may end within one. Replaces invalid bytes by U+FFFD, one per
/// maximal prefix of a character, as recommended by Unicode and as in Python.
class Utf8Stream {
 public:
  /// Appends bytes and returns the complete characters.
  std::string put(std::string_view bytes);

  /// Ends the stream and resets it. Returns U+FFFD if the last character is incomplete.
  std::string end();

 private:
  std::string held_;  // an incomplete character, at most 3 bytes
};
