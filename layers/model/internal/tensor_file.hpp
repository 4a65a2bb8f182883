/// Reads a safetensors file from disk or memory. For the library's own sources.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "../../../engine/array/array.hpp"
#include "../../../engine/array/internal/error.hpp"
#include "safetensors.hpp"

namespace tapegrad::detail {

/// A memory-mapped file with a valid header. An invalid file throws std::runtime_error, `[operation] file: expected X,
/// got Y`. If another process truncates the file meanwhile, the program ends with SIGBUS.
class TensorFile {
 public:
  /// `operation` must be a literal.
  TensorFile(const char* operation, const std::filesystem::path& path);
  /// The bytes of a file, with any alignment. Not copied; the caller keeps them alive.
  TensorFile(const char* operation, std::span<const std::byte> bytes);

  /// The file's tensors. The caller may move entries out; read() needs only the StoredTensor.
  StoredTensors& tensors() { return header_.tensors; }
  std::map<std::string, std::string>& metadata() { return header_.metadata; }

  /// The numbers of a tensor. Throws, with this name, for other types (see reads_as) and bools other than 0 and 1.
  /// Allocates only the array.
  template <class T> Array<T> read(const std::string& name, const StoredTensor& tensor) const {
    if (!reads_as<T>(tensor.dtype))
      refuse("expected ", quoted(name), " of dtype ", info_of(dtype_of<T>()).name, ", got ",
             info_of(tensor.dtype).name);
    const std::span<const std::byte> bytes = bytes_of(name, tensor);
    Array<T> array(tensor.shape);
    if constexpr (std::is_floating_point_v<T>)
      convert_floats(tensor.dtype, bytes.data(), array.size(), array.data());
    else
      std::ranges::copy(bytes, reinterpret_cast<std::byte*>(array.data()));
    return array;
  }

  /// The bytes of a tensor, shared with the mapping, or copied from a file in memory. Checks bools like read().
  std::shared_ptr<const std::byte> share(const std::string& name, const StoredTensor& tensor) const;

  template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) const {
    fail<std::runtime_error>(operation_, source_, ": ", parts...);
  }

 private:
  void map(const std::filesystem::path& path);
  void read_header();
  std::span<const std::byte> bytes_of(const std::string& name, const StoredTensor& tensor) const;

  const char* operation_;
  std::string source_;                        // the file's name, for messages
  std::shared_ptr<const std::byte> mapping_;  // null for a file in memory
  std::span<const std::byte> bytes_, data_;   // the file, and the part after its header
  SafetensorsHeader header_;
};

}  // namespace tapegrad::detail
