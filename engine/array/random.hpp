/// Random numbers that repeat: a seed, from it a key for every use, and from a key the numbers.
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
}

/// Hands out keys: the key that its seed makes, and how many it has handed out. It is a value: a copy goes on with the
/// same keys, so that one which was kept and is assigned back draws the same numbers again. Any thread may draw from
/// it, read it and assign to it while others do.
class Generator {
 public:
  /// All there is to a generator: the key of its seed, and how many keys it has handed out.
  using State = std::array<std::uint64_t, 2>;

  /// Equal seeds give equal keys, on any machine.
  constexpr explicit Generator(std::uint64_t seed = 0) : state_{random_bits(seed, 0), 0} {}
  Generator(const Generator& other) : state_(other.state()) {}  ///< goes on where the other is
  Generator& operator=(const Generator& other);                 ///< goes on where the other is
  ~Generator() = default;

  /// The key of a batch of random numbers, another at every call.
  std::uint64_t next_key();

  State state() const;  ///< where it is now
  /// The generator whose state that was.
  static Generator from_state(const State& state);

  /// Whether both go on with the same keys.
  bool operator==(const Generator& other) const { return state() == other.state(); }

 private:
  friend class detail::KeyScope;
  std::uint64_t make_key();

  mutable std::mutex in_use_;  // keeps a seed's key and its count together
  State state_;
};

/// The generator that is drawn from where no other is given. Programs that never seed it start from seed 0.
///
///     const tg::Generator kept = tg::default_generator();
///     ...
///     tg::default_generator() = kept;  // from here on the same numbers again
Generator& default_generator();

namespace detail {

/// What an option names: the default generator for null.
inline Generator& generator_or_default(Generator* generator) { return generator ? *generator : default_generator(); }

}  // namespace detail

/// Starts the default generator anew: after it the same operations give the same numbers, in any run and on any
/// machine. Any thread may call it while others draw: a key belongs to the seed before or to this one.
void manual_seed(std::uint64_t seed);

/// A field that stands for the default generator: saving a struct that lists one keeps its state, loading puts it back.
struct RandomState {};

/// Random number i of a key, evenly from [0, 1).
inline double random_uniform(std::uint64_t key, std::uint64_t i) {
  return static_cast<double>(random_bits(key, i) >> 11) * 0x1p-53;
}

/// An array of numbers evenly from [low, high); of `low` alone where both are equal. Throws std::invalid_argument when
/// low > high, and when a bound or their difference is NaN or no finite T.
template <class T>
Array<T> uniform(const Shape& shape, double low, double high, Generator& generator = default_generator());

/// An array of normally distributed numbers with that mean and standard deviation. Throws std::invalid_argument for a
/// standard deviation below 0 or of NaN.
template <class T>
Array<T> normal(const Shape& shape, double mean = 0, double standard_deviation = 1,
                Generator& generator = default_generator());

/// The numbers 0, ..., count - 1 in random order, of shape (count).
IntArray random_permutation(std::size_t count, Generator& generator = default_generator());

}  // namespace tapegrad
