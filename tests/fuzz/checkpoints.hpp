/// Checkpoints as inputs. Header and data are plain bytes, open to mutations; the header's length is correct.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "../support/checkpoint_bytes.hpp"
#include "fuzz.hpp"

namespace fuzz {

/// The file of an input. The first line is the header, the rest the data. After a leading '=', the input is the file
/// itself, with any header length.
inline std::string file_of(std::string_view input) {
  if (input.starts_with('=')) return std::string(input.substr(1));
  const std::string header(take_until(input, '\n'));
  return checkpoint(header, std::string(input));
}

/// The input of a file. Its header must not contain a newline.
inline std::string input_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return file.substr(8, length) + '\n' + file.substr(8 + length);
}

}  // namespace fuzz
