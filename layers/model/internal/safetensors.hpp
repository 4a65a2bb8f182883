/// The header of a safetensors file: where each tensor lies, in JSON. For the library's own sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include "../../../engine/array/shape.hpp"
#include "dtype.hpp"

namespace tapegrad::detail {

/// The header's key for texts.
inline constexpr const char* kMetadata = "__metadata__";

struct StoredTensor {
  Dtype dtype = Dtype::F32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // in bytes, counted from the end of the header
};

using StoredTensors = std::unordered_map<std::string, StoredTensor>;  // by name; a file may have millions

/// A malformed header. The message is "expected ..., got ...".
struct HeaderError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SafetensorsHeader {
  StoredTensors tensors;
  std::map<std::string, std::string> metadata;

  /// Parses and validates a header followed by `data_size` bytes. Throws HeaderError if it is malformed or its tensors
  /// do not fill these bytes without overlaps and gaps.
  static SafetensorsHeader parse(std::string_view json, std::uint64_t data_size);

  /// The JSON, sorted by name and padded with spaces to a multiple of 8 bytes. Throws std::invalid_argument for text
  /// other than UTF-8.
  std::string format() const;
};

/// A text from a file for a message: quoted, in ASCII, of limited length.
std::string quoted(const std::string& text);

}  // namespace tapegrad::detail
