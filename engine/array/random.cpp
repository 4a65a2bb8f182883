#include "random.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "internal/key_scope.hpp"
#include "internal/layout.hpp"

namespace tapegrad {
namespace {

constinit Generator the_default_generator;

thread_local detail::KeyScope* innermost = nullptr;

}  // namespace

// Holds one lock at a time: two generators may be assigned to each other.
Generator& Generator::operator=(const Generator& other) {
  const State state = other.state();
  const std::lock_guard lock(in_use_);
  state_ = state;
  return *this;
}

std::uint64_t Generator::next_key() { return detail::KeyScope::next_key(*this, innermost); }

std::uint64_t Generator::make_key() {
  const std::lock_guard lock(in_use_);
  return random_bits(state_[0], state_[1]++);
}

Generator::State Generator::state() const {
  const std::lock_guard lock(in_use_);
  return state_;
}

Generator Generator::from_state(const State& state) {
  Generator generator;
  generator.state_ = state;
  return generator;
}

namespace detail {

KeyScope::KeyScope(Keys* written, const Keys* repeated)
    : outer_(std::exchange(innermost, this)), written_(written), repeated_(repeated) {}

KeyScope::~KeyScope() { innermost = outer_; }

std::uint64_t KeyScope::next_key(Generator& generator, KeyScope* scope) {
  if (scope == nullptr) return generator.make_key();
  if (scope->repeated_ != nullptr) {
    require_usage(!scope->is_used_up(), "recompute",
                  "expected a function with the same number of random draws in each call, got ",
                  scope->repeated_->size(), " in the first call and more in the repeated one");
    return (*scope->repeated_)[scope->next_++];
  }
  const std::uint64_t key = next_key(generator, scope->outer_);
  scope->written_->push_back(key);
  return key;
}

}  // namespace detail

Generator& default_generator() { return the_default_generator; }

void manual_seed(std::uint64_t seed) { default_generator() = Generator(seed); }

template <class T> Array<T> uniform(const Shape& shape, double low, double high, Generator& generator) {
  constexpr double largest = std::numeric_limits<T>::max();
  detail::require(-largest <= low && low <= high && high <= largest && high - low <= largest, "uniform",
                  "expected finite bounds low <= high with a finite difference, got ", low, " and ", high);
  auto out = detail::uninitialized<T>("uniform", shape);
  const std::uint64_t key = generator.next_key();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto drawn = static_cast<T>(low + (high - low) * random_uniform(key, i));
    const bool rounded_up = low < high && drawn >= high;
    out.data()[i] = rounded_up ? std::nextafter(drawn, -std::numeric_limits<T>::infinity()) : drawn;
  }
  return out;
}

// Box and Muller 1958: two uniform numbers give two normal ones.
template <class T> Array<T> normal(const Shape& shape, double mean, double standard_deviation, Generator& generator) {
  detail::require(standard_deviation >= 0, "normal", "expected a standard deviation of at least 0, got ",
                  standard_deviation);
  auto out = detail::uninitialized<T>("normal", shape);
  const std::uint64_t key = generator.next_key();
  for (std::size_t i = 0; i < out.size(); i += 2) {
    const double radius = std::sqrt(-2 * std::log(1 - random_uniform(key, i)));
    const double angle = 2 * std::numbers::pi * random_uniform(key, i + 1);
    out.data()[i] = static_cast<T>(mean + standard_deviation * radius * std::cos(angle));
    if (i + 1 < out.size()) out.data()[i + 1] = static_cast<T>(mean + standard_deviation * radius * std::sin(angle));
  }
  return out;
}

// Fisher and Yates 1938.
IntArray random_permutation(std::size_t count, Generator& generator) {
  auto out = detail::uninitialized<std::int64_t>("random_permutation", {count});
  const std::uint64_t key = generator.next_key();
  std::iota(out.begin(), out.end(), 0);
  for (std::size_t i = count; i > 1; --i) {
    const auto j = static_cast<std::size_t>(random_uniform(key, i) * static_cast<double>(i));
    std::swap(out.data()[i - 1], out.data()[j]);
  }
  return out;
}

#define INSTANTIATE(T)                                                    \
  template Array<T> uniform<T>(const Shape&, double, double, Generator&); \
  template Array<T> normal<T>(const Shape&, double, double, Generator&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
