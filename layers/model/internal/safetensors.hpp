/// The header of a safetensors file: types, shapes and offsets of its tensors in JSON; the types' numbers. For the
/// library's own sources.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "../../../engine/array/array.hpp"
#include "../../../engine/array/bfloat16.hpp"

namespace tapegrad::detail {

enum class Dtype : std::uint8_t { BOOL, U8, I8, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64 };

struct DtypeInfo {
  const char* name;        // in the file
  const char* torch_name;  // in PyTorch
  std::size_t size;        // bytes per number
};

/// In the order of Dtype.
inline constexpr DtypeInfo kDtypes[] = {
    {"BOOL", "bool", 1},   {"U8", "uint8", 1},      {"I8", "int8", 1},    {"U16", "uint16", 2}, {"I16", "int16", 2},
    {"F16", "float16", 2}, {"BF16", "bfloat16", 2}, {"U32", "uint32", 4}, {"I32", "int32", 4},  {"F32", "float32", 4},
    {"U64", "uint64", 8},  {"I64", "int64", 8},     {"F64", "float64", 8}};

constexpr const DtypeInfo& info_of(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)]; }

/// The file's type for T; integers map by size and sign.
template <class T>
requires std::integral<T> || std::same_as<T, float> || std::same_as<T, double>
constexpr Dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return Dtype::BOOL;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? Dtype::F32 : Dtype::F64;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? Dtype::I8 : Dtype::U8;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? Dtype::I16 : Dtype::U16;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? Dtype::I32 : Dtype::U32;
  else
    return std::is_signed_v<T> ? Dtype::I64 : Dtype::U64;
}

constexpr bool is_floating(Dtype dtype) {
  return dtype == Dtype::F16 || dtype == Dtype::BF16 || dtype == Dtype::F32 || dtype == Dtype::F64;
}

/// True if the file's numbers can be read as T: any floating-point type as another, integers and bool only as
/// themselves.
template <class T> constexpr bool reads_as(Dtype dtype) {
  return dtype == dtype_of<T>() || (std::is_floating_point_v<T> && is_floating(dtype));
}

/// IEEE 754's half precision: 1 bit of sign, 5 of exponent, 10 of fraction.
struct Half {
  std::uint16_t bits;

  operator float() const {
    const std::uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    const float subnormal = static_cast<float>(fraction) * 0x1p-24f;
    const std::uint32_t magnitude = exponent == 0 ? std::bit_cast<std::uint32_t>(subnormal)
                                                  : (exponent == 31 ? 255 : exponent + 127 - 15) << 23 | fraction << 13;
    return std::bit_cast<float>(magnitude | (bits & 0x8000u) << 16);
  }
};

/// Converts `count` possibly unaligned floating-point numbers to T, float or double. Overflow gives infinity. Uses the
/// thread pool.
template <class T> void convert_floats(Dtype from, const std::byte* bytes, std::size_t count, T* to);

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

/// Calls the macro for every Number, to instantiate a template.
// clang-format off
#define TAPEGRAD_EACH_NUMBER(F)                                                                               \
  F(bool) F(float) F(double) F(signed char) F(unsigned char) F(short) F(unsigned short) F(int) F(unsigned)    \
  F(long) F(unsigned long) F(long long) F(unsigned long long)
// clang-format on
