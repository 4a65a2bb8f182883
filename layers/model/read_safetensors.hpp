/// Reads the arrays of a safetensors file without a model.
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
#include "field_storage.hpp"

namespace tapegrad {

class StoredArray;

/// Reads all tensors of a file, in the order of their names; load_metadata reads the metadata. Throws
/// std::runtime_error naming an unreadable or malformed file. The file stays memory-mapped while any of its arrays
/// exists, and as() reads from it: as with load, it must not be truncated or overwritten meanwhile. Replacing it by
/// renaming, as save() does, is safe.
std::map<std::string, StoredArray> read_safetensors(const std::filesystem::path& path);
/// The same from a copy of a file's bytes, possibly unaligned.
std::map<std::string, StoredArray> read_safetensors(std::span<const std::byte> bytes);

namespace detail {

enum class Dtype : std::uint8_t;
class TensorFile;
std::map<std::string, StoredArray> read_arrays(TensorFile&& file);

}  // namespace detail

/// An array in a file, of any type.
class StoredArray {
 public:
  /// PyTorch's name of the type: "bool", "uint8", "int8" to "uint64" and "int64", "float16", "bfloat16", "float32",
  /// "float64".
  std::string_view dtype() const;
  const Shape& shape() const& { return shape_; }  ///< () for a scalar
  Shape shape() && { return std::move(shape_); }  ///< the same, moved from a temporary

  /// The numbers as T. Converts between floating-point types like a cast, with rounding and infinities, and between
  /// integer types if every number fits; bool stays bool. Throws std::invalid_argument otherwise.
  template <detail::Number T> Array<T> as() const;

 private:
  friend std::map<std::string, StoredArray> detail::read_arrays(detail::TensorFile&& file);
  StoredArray(const std::string& name, detail::Dtype dtype, const Shape& shape, std::shared_ptr<const std::byte> bytes);
  template <class Stored, class T> void convert_integers(Array<T>& to) const;

  std::string name_;  // for messages
  detail::Dtype dtype_;
  Shape shape_;
  std::shared_ptr<const std::byte> bytes_;  // of its numbers; they share ownership of the file
};

}  // namespace tapegrad
