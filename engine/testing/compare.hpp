/// Comparing with a reference, step by step, as in a derivation done by hand.
#pragma once

#include <iosfwd>
#include <string>
#include <type_traits>
#include <vector>

#include "../tape/tensor.hpp"

namespace tapegrad {

namespace detail {

/// What can be compared, as an array: a tensor's value, an array or expression, a number.
template <class X> Array<double> in_double(const X& x) {
  if constexpr (std::is_arithmetic_v<X>)
    return Array<double>(Shape{}, static_cast<double>(x));
  else if constexpr (requires { x.value().shape(); })
    return Array<double>(x.value());
  else
    return Array<double>(x);
}

}  // namespace detail

namespace testing {

/// What comparing two arrays found. Printed it is a line: "dW   (3, 2)   2.2e-16 at (0, 1)   close".
struct CompareResult {
  /// Equal in every element; within the tolerance; or not, as when the shapes differ.
  enum class Verdict { exact, close, wrong };

  std::string name;                  ///< as given to compare
  Shape shape;                       ///< of what was compared; its elements were, when the reference has the same
  Shape reference_shape;             ///< of what it was compared with
  Verdict verdict = Verdict::exact;  ///< what was found
  double difference = 0;             ///< the largest, at `index`
  Shape index = {};                  ///< of the element that is furthest off
  double mine = 0;                   ///< the element there
  double reference = 0;              ///< the reference's

  /// Whether the two are exactly the same or close.
  explicit operator bool() const { return verdict != Verdict::wrong; }
};

/// Prints its line.
std::ostream& operator<<(std::ostream& out, const CompareResult& result);

/// Compares two tensors, arrays or numbers: exact when all elements are equal, close when none differs by more than the
/// tolerance, relative to max(1, |reference|), otherwise wrong, as NaN always is. For floats 1e-5 is a good tolerance.
CompareResult compare(const std::string& name, const Array<double>& mine, const Array<double>& reference,
                      double tolerance = 1e-9);
/// The same of tensors, arrays, expressions and numbers.
template <class Mine, class Reference>
CompareResult compare(const std::string& name, const Mine& mine, const Reference& reference, double tolerance = 1e-9) {
  return compare(name, detail::in_double(mine), detail::in_double(reference), tolerance);
}

/// The steps of a computation, each compared with a reference, up to the first that is wrong: what comes after it is
/// wrong for its sake, and is only counted.
///
///     tg::testing::Comparison steps;
///     steps.add("dS", dS, S.grad());
///     steps.add("dQ", dQ, Q.grad());
///     std::cout << steps;  // a table; or in a test: CHECK(steps)
class Comparison {
 public:
  /// `tolerance` is compare's.
  explicit Comparison(double tolerance = 1e-9) : tolerance_(tolerance) {}

  /// Adds a step; `how` says how it was computed. Gives back whether all is right so far.
  template <class Mine, class Reference>
  bool add(const std::string& name, const std::string& how, const Mine& mine, const Reference& reference) {
    if (!*this)
      ++not_compared_;
    else
      steps_.push_back({how, compare(name, mine, reference, tolerance_)});
    return static_cast<bool>(*this);
  }
  /// The same without telling how.
  template <class Mine, class Reference>
  bool add(const std::string& name, const Mine& mine, const Reference& reference) {
    return add(name, "", mine, reference);
  }

  /// Whether no step was wrong.
  explicit operator bool() const { return steps_.empty() || steps_.back().result; }

  /// Prints a line a step, lined up, and what is wrong about the last if it is.
  friend std::ostream& operator<<(std::ostream& out, const Comparison& comparison);

 private:
  struct Step {
    std::string how;
    CompareResult result;
  };

  double tolerance_;
  std::vector<Step> steps_;
  std::size_t not_compared_ = 0;
};

}  // namespace testing

}  // namespace tapegrad
