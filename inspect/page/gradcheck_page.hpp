/// Gradient checks for tests. A failed check can write a page.
#pragma once

#include <functional>

#include "../gradcheck.hpp"

/// CHECK for gradients: CHECK_GRADIENTS(f, model), with gradcheck's arguments. The message is its report. If the
/// environment variable TAPEGRAD_PAGE names a file, a failed check writes a page there. The page opens at the wrong
/// parameter and shows the tape's gradient next to the numeric one.
#define CHECK_GRADIENTS(...) DOCTEST_CHECK(::tapegrad::testing::gradcheck_with_page(__VA_ARGS__))

namespace tapegrad::testing {

/// Adds an on_failure that writes the page TAPEGRAD_PAGE names, such as "step.html"; the program's second page is
/// "step-2.html". Returns the options unchanged if the variable is not set or on_failure is.
GradcheckOptions with_page(GradcheckOptions options);

/// gradcheck with with_page(options).
inline GradcheckResult gradcheck_with_page(const std::function<Tensor<double>()>& f,
                                           const NamedParameters<double>& parameters,
                                           const GradcheckOptions& options = {}) {
  return gradcheck(f, parameters, with_page(options));
}

/// The same over all parameters of a model.
template <class F, class M>
requires detail::is_model<M> GradcheckResult gradcheck_with_page(const F& f, M& model,
                                                                 const GradcheckOptions& options = {}) {
  return gradcheck(f, model, with_page(options));
}

}  // namespace tapegrad::testing
