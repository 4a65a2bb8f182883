#include "layer_norm.hpp"

#include "../engine/array/internal/layout.hpp"
#include "../engine/ops/ops.hpp"
#include "internal/sizes.hpp"
#include "layer_scope.hpp"

namespace tapegrad {

template <class T>
LayerNorm<T>::LayerNorm(const Extents& normalized_shape, const LayerNormOptions& options)
    : eps(options.eps), center(options.center) {
  const char* name = center ? "LayerNorm" : "RMSNorm";
  detail::require(!normalized_shape.empty(), name, "expected a normalized_shape of at least one axis, got ()");
  Shape shape;
  for (std::ptrdiff_t extent : normalized_shape) {
    shape.push_back(static_cast<std::size_t>(extent));
    detail::require_size(name, "normalized_shape", shape.back());
  }
  detail::require_addressable<T>(name, shape);
  detail::require(eps >= 0, name, "expected an eps of 0 or more, got ", eps);
  weight = Parameter<T>(Array<T>(shape, T(1)));
  if (options.bias) bias = Parameter<T>(Array<T>(shape, T(0)));
}

template <class T> Tensor<T> LayerNorm<T>::operator()(const Tensor<T>& x) const {
  const LayerScope scope(*this);
  if (center) return scope.output(layer_norm(x, weight, bias, eps));
  const Tensor<T> y = rms_norm<T>(x, weight, eps);
  return scope.output(bias.defined() ? y + bias : y);
}

template struct LayerNorm<float>;
template struct LayerNorm<double>;

}  // namespace tapegrad
