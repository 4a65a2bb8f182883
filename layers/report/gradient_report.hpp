/// What is easily forgotten about gradients, on request.
#pragma once

#include <iosfwd>

#include "../model/fields.hpp"

namespace tapegrad {

namespace detail {
template <class T> bool gradient_report(std::ostream& out, const NamedConstParameters<T>& parameters);
}  // namespace detail

/// Prints a line for each parameter of a model, with the norm of its gradient and what is suspicious about it. That is
/// when it has none, since the loss does not depend on it; when it is all zeros, NaN or infinite; when several sweeps
/// were added up, and whether zero_grad() was forgotten between two steps. Parameters that the last backward pass
/// reached and the model does not list, such as those of a layer missing from TAPEGRAD_FIELDS, are neither trained nor
/// saved: they get a line each while this thread's innermost tape has them, and are counted in one line afterwards.
/// Frozen parameters are sound without a gradient. Call it after backward(). Below them stands what began as a copy and
/// has not been trained since (see print). Gives back whether every parameter has a finite gradient at its value of
/// now, which zeros are too, and none is missing from the list:
///
///     embedding.weight  (26, 64)  |gradient| 0.31
///     head.weight       (3, 64)   |gradient| 1.7   3 sweeps added up over changed values: zero_grad() forgotten?
///     head.bias         (3)       no gradient      the loss does not depend on it: unused, or behind a detach()?
template <detail::ModelArgument M> bool gradient_report(std::ostream& out, const M& model) {
  return detail::gradient_report(out, named_parameters(model));
}

}  // namespace tapegrad
