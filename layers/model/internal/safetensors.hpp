/// The header of a safetensors file: types, shapes and offsets of its tensors in JSON. For the library's own sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include "../../../engine/array/array.hpp"
#include "dtype.hpp"

namespace tapegrad::detail {

/// The header's key for texts.
inline constexpr const char* kMetadata = "__metadata__";

struct StoredTensor {
  Dtype dtype = Dtype::F32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // bytes from the end of the header
};

using StoredTensors = std::unordered_map<std::string, StoredTensor>;  // by name; a file may have millions

/// An invalid header, as "expected X, got Y".
struct HeaderError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SafetensorsHeader {
  StoredTensors tensors;
  std::map<std::string, std::string> metadata;

  /// Parses and checks the JSON: the tensors must fill the `data_size` bytes after the header without overlaps and
  /// holes. Throws HeaderError otherwise.
  static SafetensorsHeader parse(std::string_view json, std::uint64_t data_size);

  /// The JSON, sorted by name, padded with spaces to a multiple of 8 bytes. Throws std::invalid_argument for invalid
  /// UTF-8.
  std::string format() const;
};

/// Text from a file, formatted for a message: quoted, in ASCII, of limited length.
std::string quoted(const std::string& text);

}  // namespace tapegrad::detail
