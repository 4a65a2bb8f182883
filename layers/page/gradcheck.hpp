/// Gradient checks for tests. A failed check can write a page for inspection.
#pragma once

#include <functional>

#include "../model/gradcheck.hpp"

/// CHECK for gradients: CHECK_GRADIENTS(f, model), with gradcheck's arguments; the message is its report. If the
/// environment variable TAPEGRAD_PAGE names a file, a failed check writes a page there, opened at the parameter with
/// the largest error, with the tape's gradient next to the numeric one.
#define CHECK_GRADIENTS(...) DOCTEST_CHECK(::tapegrad::testing::gradcheck_with_page(__VA_ARGS__))

namespace tapegrad::testing {

/// The options with an on_failure to write the page named by TAPEGRAD_PAGE, "step.html"; a program's second page is
/// "step-2.html". Unchanged if the variable is not set or on_failure already is.
GradcheckOptions with_page(GradcheckOptions options);

/// gradcheck with the options from with_page.
inline GradcheckResult gradcheck_with_page(const std::function<Tensor<double>()>& f,
                                           const NamedParameters<double>& parameters,
                                           const GradcheckOptions& options = {}) {
  return gradcheck(f, parameters, with_page(options));
}

/// The same over all parameters of a model.
template <class M>
requires detail::is_model<M> GradcheckResult gradcheck_with_page(const std::function<Tensor<double>()>& f, M& model,
                                                                 const GradcheckOptions& options = {}) {
  return gradcheck(f, model, with_page(options));
}

}  // namespace tapegrad::testing
