/// Repeatable random numbers: a seed gives a key for each use, and a key the numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "array.hpp"
#include "random_bits.hpp"

namespace tapegrad {

namespace detail {
class KeyScope;
}  // namespace detail

/// A source of keys. A copy continues with the same keys. Threads may draw from it, read it and assign to it
/// concurrently.
class Generator {
 public:
  using State = std::array<std::uint64_t, 2>;  ///< The key of the seed, and the number of keys drawn.

  /// Equal seeds give equal keys, on any machine.
  constexpr explicit Generator(std::uint64_t seed = 0) : state_{random_bits(seed, 0), 0} {}
  Generator(const Generator& other) : state_(other.state()) {}  ///< continues like the other
  Generator& operator=(const Generator& other);                 ///< continues like the other
  ~Generator() = default;

  std::uint64_t next_key();  ///< A new key, for a batch of random numbers.

  State state() const;                              ///< to save it
  static Generator from_state(const State& state);  ///< restores it

  bool operator==(const Generator& other) const { return state() == other.state(); }  ///< equal next keys

 private:
  friend class detail::KeyScope;
  std::uint64_t make_key();

  mutable std::mutex in_use_;  // keeps a seed's key and its count together
  State state_;
};

/// The generator used by default; its seed is 0 until manual_seed sets another.
///
///     const tg::Generator kept = tg::default_generator();
///     ...
///     tg::default_generator() = kept;  // from here on the same numbers again
Generator& default_generator();

namespace detail {

inline Generator& generator_or_default(Generator* generator) { return generator ? *generator : default_generator(); }

}  // namespace detail

/// Restarts the default generator: the same operations then give the same numbers on any machine. Thread-safe.
void manual_seed(std::uint64_t seed);

/// A field for the default generator's state: saving a struct that lists one saves the state, loading restores it.
struct RandomState {};

/// Random number i of a key, uniform in [0, 1).
inline double random_uniform(std::uint64_t key, std::uint64_t i) {
  return static_cast<double>(random_bits(key, i) >> 11) * 0x1p-53;
}

/// An array of numbers uniform in [low, high), or all `low` if both are equal. Throws std::invalid_argument if low >
/// high, or if a bound or their difference is not a finite T.
template <class T>
Array<T> uniform(const Shape& shape, double low, double high, Generator& generator = default_generator());

/// An array of normally distributed numbers. Throws std::invalid_argument if the standard deviation is negative or NaN.
template <class T>
Array<T> normal(const Shape& shape, double mean = 0, double standard_deviation = 1,
                Generator& generator = default_generator());

/// The numbers 0, ..., count - 1 in random order, of shape (count).
IntArray random_permutation(std::size_t count, Generator& generator = default_generator());

}  // namespace tapegrad
