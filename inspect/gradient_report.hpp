/// A report of common mistakes with gradients.
#pragma once

#include <iosfwd>

#include "../layers/model/fields.hpp"

namespace tapegrad {

namespace detail {
template <class T> bool gradient_report(std::ostream& out, const NamedConstParameters<T>& parameters);
}  // namespace detail

/// Prints a line for each parameter of a model with the norm of its gradient and a warning if the gradient is missing
/// because the loss does not depend on it, all zeros, not finite, or the sum of several backward passes, possibly after
/// a forgotten zero_grad(). Parameters reached by the last backward pass but missing in TAPEGRAD_FIELDS are neither
/// trained nor saved: they get a line each while this thread's innermost tape has them, and one line with their number
/// afterwards. Frozen parameters need no gradient. Then lists untrained copies (see print). Call it after backward().
/// Returns true if every parameter has a finite gradient at its present value and none is missing from the list:
///
///     embedding.weight  (26, 64)  |gradient| 0.31
///     head.weight       (3, 64)   |gradient| 1.7   3 backward passes added up over changed values: zero_grad()
///     forgotten? head.bias         (3)       no gradient      the loss does not depend on it: unused, or behind a
///     detach()?
template <detail::ModelArgument M> bool gradient_report(std::ostream& out, const M& model) {
  return detail::gradient_report(out, named_parameters(model));
}

}  // namespace tapegrad
