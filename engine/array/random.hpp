/// Random numbers that repeat: a seed, and from it a key for every use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "array.hpp"
#include "random_bits.hpp"

namespace tapegrad {

/// Starts the random numbers anew: after it the same operations give the same numbers, in any run and on any machine.
/// Programs that never call it start from seed 0. Any thread may call it while others draw: a key belongs to the seed
/// before or to this one.
void manual_seed(std::uint64_t seed);

/// A fresh key for a batch of random numbers. Keys are handed out in order, to all threads from one line.
std::uint64_t next_random_key();

/// Random number i of a key, evenly from [0, 1).
inline double random_uniform(std::uint64_t key, std::uint64_t i) {
  return static_cast<double>(random_bits(key, i) >> 11) * 0x1p-53;
}

/// An array of numbers evenly from [low, high); of `low` alone where both are equal. Throws std::invalid_argument when
/// low > high, and when a bound or their difference is NaN or no finite T.
template <class T> Array<T> uniform(const Shape& shape, double low, double high);

/// An array of normally distributed numbers. Throws std::invalid_argument for a standard deviation below 0 or of NaN.
template <class T> Array<T> normal(const Shape& shape, double mean = 0, double standard_deviation = 1);

/// The numbers 0, ..., count - 1 in random order.
IntArray random_permutation(std::size_t count);

}  // namespace tapegrad
