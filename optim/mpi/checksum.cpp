#include "checksum.hpp"

#include <cstring>

namespace tapegrad::mpi::detail {

// FNV-1a on words of eight bytes. Each step also mixes the upper half into the lower.
std::uint64_t checksum(const void* bytes, std::size_t count) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t hash = 0xcbf29ce484222325 ^ count;
  const auto add = [&](std::uint64_t word) {
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 32;
  };
  const char* at = static_cast<const char*>(bytes);
  std::uint64_t word = 0;
  for (; count >= sizeof word; at += sizeof word, count -= sizeof word) {
    std::memcpy(&word, at, sizeof word);
    add(word);
  }
  word = 0;
  if (count > 0) std::memcpy(&word, at, count);
  add(word);
  return hash;
}

}  // namespace tapegrad::mpi::detail
