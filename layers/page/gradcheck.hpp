/// Gradient checks of tests, with a page to look into where one fails.
#pragma once

#include <functional>

#include "../model/gradcheck.hpp"

/// CHECK for gradients: CHECK_GRADIENTS(f, model), with gradcheck's arguments; the message is its report. When the
/// environment variable TAPEGRAD_PAGE names a file, a check that fails writes a page there, opened at the parameter
/// that is wrong, with the tape's gradient beside the numeric one.
#define CHECK_GRADIENTS(...) DOCTEST_CHECK(::tapegrad::testing::gradcheck_with_page(__VA_ARGS__))

namespace tapegrad::testing {

/// The options, with an on_failure that writes the page that TAPEGRAD_PAGE asks for, "step.html"; the second one of a
/// program is "step-2.html". As they are where the variable is not set or on_failure is somebody's already.
GradcheckOptions with_page(GradcheckOptions options);

/// gradcheck with those options.
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
