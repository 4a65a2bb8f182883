/// Checksums, compared by ranks instead of arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "../../engine/array/array.hpp"

namespace tapegrad::mpi::detail {

/// A 64-bit checksum; changing any byte changes it.
std::uint64_t checksum(const void* bytes, std::size_t count);

/// The checksum of a stored field: nothing, a text, or an array with its shape.
inline std::uint64_t checksum_of(std::nullopt_t) { return 0; }
inline std::uint64_t checksum_of(const std::string& text) { return checksum(text.data(), text.size()); }
template <class N> std::uint64_t checksum_of(const Array<N>& array) {
  const std::uint64_t parts[] = {checksum_of(to_string(array.shape())),
                                 checksum(array.data(), array.size() * sizeof(N))};
  return checksum(parts, sizeof parts);
}

/// The checksum of a field with its name.
template <class Stored> std::uint64_t checksum_of(const std::string& name, const Stored& stored) {
  const std::uint64_t parts[] = {checksum_of(name), checksum_of(stored)};
  return checksum(parts, sizeof parts);
}

}  // namespace tapegrad::mpi::detail
