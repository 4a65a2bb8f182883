/// Random numbers by their index.
#pragma once

#include <cstdint>

namespace tapegrad {

/// Random number i of a key, by SplitMix64 (Steele, Lea and Flood 2014). Rules recompute it instead of saving it.
[[gnu::always_inline]] constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t i) {
  std::uint64_t z = key + (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace tapegrad
