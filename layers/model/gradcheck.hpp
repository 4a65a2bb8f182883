/// Checks the gradients of a model.
#pragma once

#include <functional>

#include "../../engine/testing/gradcheck.hpp"
#include "fields.hpp"

namespace tapegrad::testing {

/// gradcheck over all parameters of a model. The report names them by their paths:
///
///     gradcheck([&] { return tg::cross_entropy(model(ids), labels); }, model)
template <class M>
requires detail::is_model<M> GradcheckResult gradcheck(const std::function<Tensor<double>()>& f, M& model,
                                                       const GradcheckOptions& options = {}) {
  return gradcheck(f, named_parameters(model), options);
}

}  // namespace tapegrad::testing
