/// The types of the numbers in a safetensors file. For the library's own sources.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "../../../engine/array/bfloat16.hpp"

namespace tapegrad::detail {

enum class Dtype : std::uint8_t { BOOL, U8, I8, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64 };

struct DtypeInfo {
  const char* name;        // in the file
  const char* torch_name;  // in PyTorch
  std::size_t size;        // of a number, in bytes
};

/// Indexed by Dtype.
inline constexpr DtypeInfo kDtypes[] = {
    {"BOOL", "bool", 1},   {"U8", "uint8", 1},      {"I8", "int8", 1},    {"U16", "uint16", 2}, {"I16", "int16", 2},
    {"F16", "float16", 2}, {"BF16", "bfloat16", 2}, {"U32", "uint32", 4}, {"I32", "int32", 4},  {"F32", "float32", 4},
    {"U64", "uint64", 8},  {"I64", "int64", 8},     {"F64", "float64", 8}};

constexpr const DtypeInfo& info_of(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)]; }

/// The file's type for T; integers are matched by size and sign.
template <class T>
requires std::integral<T> || std::same_as<T, float> || std::same_as<T, double>
constexpr Dtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return Dtype::BOOL;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? Dtype::F32 : Dtype::F64;
  else
    switch (sizeof(T)) {
      case 1:
        return std::is_signed_v<T> ? Dtype::I8 : Dtype::U8;
      case 2:
        return std::is_signed_v<T> ? Dtype::I16 : Dtype::U16;
      case 4:
        return std::is_signed_v<T> ? Dtype::I32 : Dtype::U32;
      default:
        return std::is_signed_v<T> ? Dtype::I64 : Dtype::U64;
    }
}

constexpr bool is_floating(Dtype dtype) {
  return dtype == Dtype::F16 || dtype == Dtype::BF16 || dtype == Dtype::F32 || dtype == Dtype::F64;
}

/// True if load() reads this type as T: any floating-point type as another, integers and bool only as the same type.
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

/// Converts `count` floating-point numbers, possibly unaligned, to float or double, in parallel. Overflow becomes
/// infinite.
template <class T> void convert_floats(Dtype from, const std::byte* bytes, std::size_t count, T* to);

}  // namespace tapegrad::detail

/// Calls the macro for every Number, to instantiate a template.
// clang-format off
#define TAPEGRAD_EACH_NUMBER(F)                                                                               \
  F(bool) F(float) F(double) F(signed char) F(unsigned char) F(short) F(unsigned short) F(int) F(unsigned)    \
  F(long) F(unsigned long) F(long long) F(unsigned long long)
// clang-format on
