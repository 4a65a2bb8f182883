#include "clip.hpp"

#include <cmath>

#include "internal/optimizer.hpp"

namespace tapegrad {

template <class T> static double norm_of(const char* operation, const Parameters<T>& parameters) {
  detail::require_each_once(operation, parameters, /*skip_undefined=*/true);
  double squares = 0;
  for (const auto& parameter : parameters)
    if (parameter->has_grad()) squares += detail::sum_of_squares(parameter->grad().data(), parameter->grad().size());
  return std::sqrt(squares);
}

template <class T> double grad_norm(const Parameters<T>& parameters) { return norm_of("grad_norm", parameters); }

template <class T> double clip_grad_norm(const Parameters<T>& parameters, double max_norm) {
  detail::require(max_norm >= 0, "clip_grad_norm", "expected a max_norm of 0 or more, got ", max_norm);
  const double norm = norm_of("clip_grad_norm", parameters), factor = max_norm / (norm + 1e-6);
  if (!std::isfinite(norm) || !(factor < 1)) return norm;

  for (const auto& parameter : parameters)  // allocations first, so all gradients are scaled or none
    if (parameter->has_grad()) parameter->mutable_grad();
  // The factor is a double: for large gradients a float loses its digits or is 0.
  for (const auto& parameter : parameters)
    if (parameter->has_grad())
      detail::for_each_element(parameter->grad().size(),
                               [factor, grad = parameter->mutable_grad().data()](std::size_t i) {
                                 grad[i] = static_cast<T>(grad[i] * factor);
                               });
  return norm;
}

template double grad_norm(const Parameters<float>&);
template double grad_norm(const Parameters<double>&);
template double clip_grad_norm(const Parameters<float>&, double);
template double clip_grad_norm(const Parameters<double>&, double);

}  // namespace tapegrad
