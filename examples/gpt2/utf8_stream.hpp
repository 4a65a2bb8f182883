/// Bytes that come in pieces, as text that can be shown at every moment.
#pragma once

#include <string>
#include <string_view>

/// Holds back a character whose last bytes have not come yet: a token may end within one. Bytes that no character can
/// have where they stand come out as U+FFFD, one for each longest begin of a character, as Unicode recommends and
/// Python does.
class Utf8Stream {
 public:
  /// The text that is complete with these bytes, in UTF-8.
  std::string put(std::string_view bytes);

  /// What is left when nothing more comes: U+FFFD where the last character is not complete. The stream begins anew.
  std::string end();

 private:
  std::string held_;  // the begin of a character, at most 3 bytes
};
