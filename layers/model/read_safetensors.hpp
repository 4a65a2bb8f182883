/// The arrays of a safetensors file, without a model that has them.
///
///     const auto tensors = tg::read_safetensors("model.safetensors");
///     const tg::Array<float> weight = tensors.at("head.weight").as<float>();
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "../../engine/array/array.hpp"
#include "number.hpp"

namespace tapegrad {

class StoredArray;

/// Reads all tensors of a file, in the order of their names; the metadata is load_metadata's. Throws std::runtime_error
/// naming the file for one that cannot be read or is not well-formed. The file is mapped into memory for as long as one
/// of its arrays lives, and as() reads from it: as with load, it must not be made shorter or written over meanwhile.
/// Files that save() or another program replaces by renaming stay as they were for those who have them.
std::map<std::string, StoredArray> read_safetensors(const std::filesystem::path& path);
/// The same from the bytes of a file, which may lie unaligned. They are copied.
std::map<std::string, StoredArray> read_safetensors(std::span<const std::byte> bytes);

namespace detail {

enum class Dtype : std::uint8_t;
class TensorFile;
std::map<std::string, StoredArray> read_arrays(TensorFile&& file);

}  // namespace detail

/// An array as it is in a file, in whatever type.
class StoredArray {
 public:
  /// PyTorch's name of the type: "bool", "uint8", "int8" to "uint64" and "int64", "float16", "bfloat16", "float32",
  /// "float64".
  std::string_view dtype() const;
  const Shape& shape() const& { return shape_; }  ///< () for a single number
  Shape shape() && { return std::move(shape_); }  ///< the same, moved from a temporary

  /// The numbers as T. Among floating-point types all are converted, rounded and too large ones made infinite as by a
  /// cast; integers become integers of other types where each of them fits; bool stays bool. Throws
  /// std::invalid_argument otherwise.
  template <detail::Number T> Array<T> as() const;

 private:
  friend std::map<std::string, StoredArray> detail::read_arrays(detail::TensorFile&& file);
  StoredArray(const std::string& name, detail::Dtype dtype, const Shape& shape, std::shared_ptr<const std::byte> bytes);
  template <class Stored, class T> void convert_integers(Array<T>& to) const;

  std::string name_;  // for messages
  detail::Dtype dtype_;
  Shape shape_;
  std::shared_ptr<const std::byte> bytes_;  // of its numbers, which share their file
};

}  // namespace tapegrad
