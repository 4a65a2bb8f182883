/// Gradient checking: the backward pass against central differences of the forward pass.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <type_traits>

#include "../engine/tape/parameter_handle.hpp"
#include "../layers/model/fields.hpp"

namespace tapegrad {
class Tape;
}

namespace tapegrad::testing {

/// A failed check.
struct GradcheckFailure {
  const Tape& tape;                                     ///< f recorded with keep_values, after its backward pass
  const std::string& report;                            ///< the result's report
  const std::string& worst;                             ///< the name of the parameter with the largest error
  const std::map<std::string, Array<double>>& numeric;  ///< numeric gradients; empty with directions
};

/// What gradcheck compares, and how closely.
struct GradcheckOptions {
  double step = 1e-6;       ///< h in (f(x + h) - f(x - h)) / 2h, relative to max(1, |x|); along directions, / cbrt(n)
  double tolerance = 1e-6;  ///< max difference of the gradients, relative to max(1, |analytic|, |numeric|)
  /// 0 compares each element. Otherwise the number of random directions in the space of all parameters whose slopes are
  /// compared, at two calls of f each. Four take a model of any size and miss a wrong gradient rarely.
  std::size_t directions = 0;
  /// Called if a check fails, for instance to write a page; its return value is appended to the report.
  std::function<std::string(const GradcheckFailure&)> on_failure{};
};

/// The outcome of gradcheck.
struct GradcheckResult {
  bool ok = true;  ///< true if no gradient is wrong
  /// If ok, the number of elements compared. Otherwise, for each wrong parameter, its element with the largest error:
  /// name, index, analytic and numeric gradient, step, and possible causes other than a wrong rule: a kink, or an f
  /// with different results from call to call. With directions: the parameter with the largest error along the first
  /// wrong one.
  std::string report;

  explicit operator bool() const { return ok; }  ///< ok
};

/// Prints the report.
std::ostream& operator<<(std::ostream& out, const GradcheckResult& result);

/// Compares the gradient of f with respect to each element of each parameter with a central difference. Weights f's
/// outputs with random numbers, since a plain sum hides errors: the gradient of a softmax's sum is 0 under any rule. f
/// must be deterministic: dropout off. Skips frozen and undefined parameters, checks duplicates once, and restores all
/// values and gradients. Computes the differences without recording, even inside a tape. Throws std::invalid_argument
/// without parameters, and rethrows f's exceptions.
GradcheckResult gradcheck(const std::function<Tensor<double>()>& f, const NamedParameters<double>& parameters,
                          const GradcheckOptions& options = {});

/// gradcheck over all parameters of a model. The report names them by their paths:
///
///     gradcheck([&] { return tg::cross_entropy(model(ids), labels); }, model)
///
/// The model's scalar is double, so a model to check is a template on its scalar.
template <class F, class M>
requires detail::is_model<M> GradcheckResult gradcheck(const F& f, M& model, const GradcheckOptions& options = {}) {
  constexpr bool is_double = std::is_same_v<detail::ScalarOf<M>, double>;
  static_assert(is_double,
                "tapegrad: gradcheck needs double: make the model a template on its scalar, as in "
                "`template <class T> struct Model { tg::Linear<T> head{4, 2}; };`, and check Model<double>");
  if constexpr (is_double) return gradcheck(f, named_parameters(model), options);
}

}  // namespace tapegrad::testing
