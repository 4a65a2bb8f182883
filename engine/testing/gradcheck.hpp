/// Checking gradients: what a sweep gives against central differences of the forward pass.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>

#include "../tape/parameter_handle.hpp"

namespace tapegrad {
class Tape;
}

namespace tapegrad::testing {

/// A check that has failed.
struct GradcheckFailure {
  const Tape& tape;                                     ///< what f recorded, with its sweep; it keeps its values
  const std::string& report;                            ///< as in the result
  const std::string& worst;                             ///< the name of the parameter that is furthest off
  const std::map<std::string, Array<double>>& numeric;  ///< the numeric gradients of all parameters that are wrong
};

/// How gradcheck steps, and what it lets pass.
struct GradcheckOptions {
  double step = 1e-6;       ///< h in (f(x + h) - f(x - h)) / 2h, relative to max(1, |x|)
  double tolerance = 1e-6;  ///< how far the gradients may be apart, relative to max(1, |analytic|, |numeric|)
  /// When a check fails, shows it to somebody; what it returns is added to the report.
  std::function<std::string(const GradcheckFailure&)> on_failure{};
};

/// What gradcheck found.
struct GradcheckResult {
  bool ok = true;  ///< whether no gradient is wrong
  /// When not ok, of each parameter that is wrong the element that is furthest off: the parameter's name, the index,
  /// analytic and numeric gradient, the step; and what may be the reason where the rule is right: a kink, or an f that
  /// differs from call to call. When ok, how many elements were compared.
  std::string report;

  explicit operator bool() const { return ok; }  ///< ok
};

/// Prints its report.
std::ostream& operator<<(std::ostream& out, const GradcheckResult& result);

/// Compares the gradient of f with respect to every element of every parameter with a central difference. The outputs
/// of f are weighted with random numbers, since a plain sum hides errors (the gradient of a softmax's sum is 0 whatever
/// the rule does). f must compute the same each time it is called: dropout off.
/// Frozen parameters and those without a value are passed over, and one that is given twice is checked once. The
/// differences are computed without recording, also inside a tape. Values and gradients of the parameters are as before
/// when it returns. Throws std::invalid_argument without parameters, and what f throws.
GradcheckResult gradcheck(const std::function<Tensor<double>()>& f, const NamedParameters<double>& parameters,
                          const GradcheckOptions& options = {});

}  // namespace tapegrad::testing
