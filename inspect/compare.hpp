/// Comparing with a reference, step by step, as in a derivation by hand.
#pragma once

#include <iosfwd>
#include <string>
#include <type_traits>
#include <vector>

#include "../engine/array/reset_on_move.hpp"
#include "../engine/tape/tensor.hpp"

/// CHECK for values within a tolerance: CHECK_CLOSE(actual, expected) or CHECK_CLOSE(actual, expected, tolerance), with
/// close's arguments. The message shows the element with the largest difference.
#define CHECK_CLOSE(...) DOCTEST_CHECK(::tapegrad::testing::close(__VA_ARGS__))

namespace tapegrad {

namespace detail {

/// The comparable value of x, a tensor, array, expression or number, as an array.
template <class X> Array<double> in_double(const X& x) {
  if constexpr (std::is_arithmetic_v<X>)
    return Array<double>(Shape{}, static_cast<double>(x));
  else if constexpr (requires { x.value().shape(); })
    return Array<double>(x.value());
  else
    return Array<double>(x);
}

/// Of the elements of x.
template <class X> struct ComparedScalar { using Type = typename X::value_type; };
template <class X>
requires std::is_arithmetic_v<X>
struct ComparedScalar<X> {
  using Type = X;
};

template <class... X>
inline constexpr double kDefaultTolerance = (std::is_same_v<typename ComparedScalar<X>::Type, float> || ...) ? 1e-5
                                                                                                             : 1e-9;

}  // namespace detail

namespace testing {

/// The outcome of comparing two arrays. Prints as a line: "dW   (3, 2)   2.2e-16 at (0, 1)   close".
struct CompareResult {
  /// Equal in every element, within the tolerance, or neither; unequal shapes are wrong.
  enum class Verdict { exact, close, wrong };

  std::string name;                  ///< as given to compare
  Shape shape;                       ///< of the compared array
  Shape reference_shape;             ///< of the reference
  Verdict verdict = Verdict::exact;  ///< the outcome
  double difference = 0;             ///< the largest one, at `index`
  Shape index = {};                  ///< of the element with the largest difference
  double mine = 0;                   ///< the element there
  double reference = 0;              ///< the reference's

  /// True if exact or close.
  explicit operator bool() const { return verdict != Verdict::wrong; }
};

/// Prints the line.
std::ostream& operator<<(std::ostream& out, const CompareResult& result);

/// Compares two arrays: exact if all elements are equal, close if none differs by more than the tolerance, relative to
/// max(1, |reference|), otherwise wrong. NaN is always wrong. A good tolerance for floats is 1e-5.
CompareResult compare(const std::string& name, const Array<double>& mine, const Array<double>& reference,
                      double tolerance = 1e-9);
/// The same for tensors, arrays, expressions and numbers.
template <class Mine, class Reference>
CompareResult compare(const std::string& name, const Mine& mine, const Reference& reference, double tolerance = 1e-9) {
  return compare(name, detail::in_double(mine), detail::in_double(reference), tolerance);
}

/// compare with the name "actual" and a default tolerance of 1e-9, or 1e-5 for floats.
template <class Actual, class Expected>
CompareResult close(const Actual& actual, const Expected& expected,
                    double tolerance = detail::kDefaultTolerance<Actual, Expected>) {
  return compare("actual", actual, expected, tolerance);
}
/// The same for numbers in braces, such as {{1, 2}, {3, 4}}.
template <class Actual>
CompareResult close(const Actual& actual, const Array<double>& expected,
                    double tolerance = detail::kDefaultTolerance<Actual>) {
  return compare("actual", actual, expected, tolerance);
}

/// Compares the steps of a computation with references, up to the first wrong one. Later steps depend on it and are
/// only counted.
///
///     tg::testing::Comparison steps;
///     steps.add("dS", dS, S.grad());
///     steps.add("dQ", dQ, Q.grad());
///     std::cout << steps;  // a table; or in a test: CHECK(steps)
class Comparison {
 public:
  /// `tolerance` is compare's.
  explicit Comparison(double tolerance = 1e-9) : tolerance_(tolerance) {}

  /// Adds a step; `how` tells the formula. Returns true if all steps so far are right.
  template <class Mine, class Reference>
  bool add(const std::string& name, const std::string& how, const Mine& mine, const Reference& reference) {
    if (!*this)
      not_compared_ = not_compared_ + 1;
    else
      steps_.push_back({how, compare(name, mine, reference, tolerance_)});
    return static_cast<bool>(*this);
  }
  /// The same without a formula.
  template <class Mine, class Reference>
  bool add(const std::string& name, const Mine& mine, const Reference& reference) {
    return add(name, "", mine, reference);
  }

  /// True if no step is wrong.
  explicit operator bool() const { return steps_.empty() || steps_.back().result; }

  /// Prints a table with a line per step, and details of the wrong one.
  friend std::ostream& operator<<(std::ostream& out, const Comparison& comparison);

 private:
  struct Step {
    std::string how;
    CompareResult result;
  };

  double tolerance_;
  std::vector<Step> steps_;
  detail::ResetOnMove<std::size_t> not_compared_;
};

}  // namespace testing

}  // namespace tapegrad
