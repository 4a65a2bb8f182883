/// Reading a safetensors file, from the disk or from memory. For the library's own sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>

#include "../../../engine/array/array.hpp"
#include "../../../engine/array/internal/error.hpp"
#include "dtype.hpp"
#include "safetensors.hpp"

namespace tapegrad::detail {

/// A file that is open for reading, its header read and found right. Whatever is wrong with it is a std::runtime_error,
/// `[operation] file: what was expected, what was given`.
class TensorFile {
 public:
  /// `operation` is a literal.
  TensorFile(const char* operation, const std::filesystem::path& path);
  /// The bytes of a file, wherever they begin; they are not copied, and stay as long as this is used.
  TensorFile(const char* operation, std::span<const std::byte> bytes);

  /// What the file has, for the caller to take from: reading needs a StoredTensor alone.
  StoredTensors& tensors() { return header_.tensors; }
  std::map<std::string, std::string>& metadata() { return header_.metadata; }

  /// The numbers of a tensor. Refuses, by the name given, those that do not read as T (see reads_as), and bools other
  /// than 0 and 1. Takes the array's memory and no more.
  template <class T> Array<T> read(const std::string& name, const StoredTensor& tensor) {
    if (!reads_as<T>(tensor.dtype))
      refuse("expected ", quoted(name), " of dtype ", info_of(dtype_of<T>()).name, ", given ",
             info_of(tensor.dtype).name);
    Array<T> array(tensor.shape);
    if constexpr (std::is_floating_point_v<T>)
      read_floats(tensor, array.data(), array.size());
    else
      read_bytes(name, tensor, array.data());
    return array;
  }

  /// The bytes of a tensor, tensor.end - tensor.begin of them; bools are checked as above.
  void read_bytes(const std::string& name, const StoredTensor& tensor, void* to);

  template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) const {
    fail<std::runtime_error>(operation_, source_, ": ", parts...);
  }

 private:
  void read_header(std::uint64_t size);
  template <class T> void read_floats(const StoredTensor& tensor, T* to, std::size_t count);
  void copy(std::uint64_t place, void* to, std::size_t count);

  const char* operation_;
  std::string source_;  // the file's name, for messages
  std::ifstream file_;
  std::span<const std::byte> bytes_;  // when there is no file
  std::uint64_t data_begin_ = 0;
  SafetensorsHeader header_;
};

}  // namespace tapegrad::detail
