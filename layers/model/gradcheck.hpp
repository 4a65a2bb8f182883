/// Checking the gradients of a model.
#pragma once

#include <functional>

#include "../../engine/testing/gradcheck.hpp"
#include "fields.hpp"

namespace tapegrad::testing {

/// The check of engine/testing/gradcheck.hpp over all parameters of a model, which the report names by their paths:
///
///     gradcheck([&] { return tg::cross_entropy(model(ids), labels); }, model)
template <class M>
requires detail::is_model<M> GradcheckResult gradcheck(const std::function<Tensor<double>()>& f, M& model,
                                                       const GradcheckOptions& options = {}) {
  return gradcheck(f, named_parameters(model), options);
}

}  // namespace tapegrad::testing
