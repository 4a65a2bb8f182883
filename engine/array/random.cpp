#include "random.hpp"

#include <atomic>
#include <cmath>
#include <numbers>
#include <utility>

namespace tapegrad {
namespace {

std::atomic<std::uint64_t> seed_key{random_bits(0, 0)};
std::atomic<std::uint64_t> keys_handed_out{0};

}  // namespace

void manual_seed(std::uint64_t seed) {
  seed_key = random_bits(seed, 0);
  keys_handed_out = 0;
}

std::uint64_t next_random_key() { return random_bits(seed_key, keys_handed_out++); }

template <class T> Array<T> uniform(const Shape& shape, double low, double high) {
  const std::uint64_t key = next_random_key();
  Array<T> out(shape);
  for (std::size_t i = 0; i < out.size(); ++i)
    out.data()[i] = static_cast<T>(low + (high - low) * random_uniform(key, i));
  return out;
}

// Box and Muller 1958: two uniform numbers give two normal ones.
template <class T> Array<T> normal(const Shape& shape, double mean, double standard_deviation) {
  const std::uint64_t key = next_random_key();
  Array<T> out(shape);
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - random_uniform(key, i)));
    const double angle = 2 * std::numbers::pi * random_uniform(key, i + 1);
    out.data()[i] = static_cast<T>(mean + standard_deviation * radius * std::cos(angle));
    if (i + 1 < out.size()) out.data()[i + 1] = static_cast<T>(mean + standard_deviation * radius * std::sin(angle));
  }
  return out;
}

// Fisher and Yates: each place takes one of the numbers not yet placed.
IntArray random_permutation(std::size_t count) {
  const std::uint64_t key = next_random_key();
  IntArray out(Shape{count});
  for (std::size_t i = 0; i < count; ++i) out.data()[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = count; i > 1; --i) {
    const auto j = static_cast<std::size_t>(random_uniform(key, i) * static_cast<double>(i));
    std::swap(out.data()[i - 1], out.data()[j]);
  }
  return out;
}

#define INSTANTIATE(T)                                        \
  template Array<T> uniform<T>(const Shape&, double, double); \
  template Array<T> normal<T>(const Shape&, double, double);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
