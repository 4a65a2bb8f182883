/// Checkpoints as inputs: the header and what lies behind it are plain to mutations, the header's length is right.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "../support/checkpoint_bytes.hpp"
#include "fuzz.hpp"

namespace fuzz {

/// The file of an input: its first line is the header, the rest what lies behind. An input that begins with '=' is the
/// file itself, with a length that may lie.
inline std::string file_of(std::string_view input) {
  if (input.starts_with('=')) return std::string(input.substr(1));
  const std::string header(take_until(input, '\n'));
  return checkpoint(header, std::string(input));
}

/// The input of a file. Its header must have no '\n'.
inline std::string input_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return file.substr(8, length) + '\n' + file.substr(8 + length);
}

}  // namespace fuzz
