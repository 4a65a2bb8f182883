#include "linear.hpp"

#include <cmath>

#include "../engine/array/internal/layout.hpp"
#include "internal/sizes.hpp"
#include "layer_scope.hpp"
#include "skip_initialization.hpp"

namespace tapegrad {

template <class T> Linear<T>::Linear(std::size_t in_features, std::size_t out_features, const LinearOptions& options) {
  detail::require_size("Linear", "in_features", in_features);
  detail::require_size("Linear", "out_features", out_features);
  detail::require_addressable<T>("Linear", {out_features, in_features});
  const double bound = 1 / std::sqrt(static_cast<double>(in_features));
  Generator& generator = detail::generator_or_default(options.generator);
  const auto draw = [&](const Shape& shape) { return uniform<T>(shape, -bound, bound, generator); };
  weight = Parameter<T>(detail::initial_weights<T>({out_features, in_features}, draw));
  if (options.bias) bias = Parameter<T>(detail::initial_weights<T>({out_features}, draw));
}

template <class T> Tensor<T> Linear<T>::operator()(const Tensor<T>& x) const {
  const LayerScope scope(*this);
  const Tensor<T> y = linear(x, weight, bias);
  return scope.output(low_rank ? y + (*low_rank)(x) : y);
}

template struct Linear<float>;
template struct Linear<double>;

}  // namespace tapegrad
