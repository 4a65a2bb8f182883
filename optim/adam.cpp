#include "adam.hpp"

#include <cmath>

#include "internal/optimizer.hpp"

namespace tapegrad {

template <class Options> static void check_options(const char* optimizer, const Options& options) {
  detail::require_options(optimizer,
                          {{"lr", options.lr}, {"eps", options.eps}, {"weight_decay", options.weight_decay}});
  const auto [beta1, beta2] = options.betas;
  detail::require(0 <= beta1 && beta1 < 1 && 0 <= beta2 && beta2 < 1, optimizer, "expected betas in [0, 1), got ",
                  beta1, " and ", beta2);
}

namespace {

// Weight decay adds to the gradient; decoupled decay is subtracted from the parameter before the step.
template <class T, class Options>
void adam_step(Parameter<T>& parameter, AdamState<T>& state, const Options& options, double weight_decay,
               double decoupled_weight_decay) {
  const auto t = static_cast<double>(++state.step);
  const auto [beta1, beta2] = options.betas;
  const double bias_correction1 = 1 - std::pow(beta1, t), bias_correction2 = 1 - std::pow(beta2, t);
  const auto l2 = static_cast<T>(weight_decay), decay = static_cast<T>(1 - options.lr * decoupled_weight_decay);
  const auto b1 = static_cast<T>(beta1), new1 = static_cast<T>(1 - beta1);
  const auto b2 = static_cast<T>(beta2), new2 = static_cast<T>(1 - beta2);
  const auto step_size = static_cast<T>(options.lr / bias_correction1), eps = static_cast<T>(options.eps);
  const auto rsqrt_correction2 = static_cast<T>(1 / std::sqrt(bias_correction2));

  const T* grad = parameter.grad().data();
  T *p = parameter.mutable_value().data(), *m = state.exp_avg.mutable_value().data(),
    *v = state.exp_avg_sq.mutable_value().data();
  detail::for_each_element(parameter.size(), [=](std::size_t i) {
    const T g = detail::decayed(grad[i], l2, p[i]);
    m[i] = b1 * m[i] + new1 * g;
    v[i] = b2 * v[i] + new2 * g * g;
    p[i] = decay * p[i] - step_size * m[i] / (std::sqrt(v[i]) * rsqrt_correction2 + eps);
  });
}

}  // namespace

template <class T>
void Adam<T>::update(Parameter<T>& parameter, AdamState<T>& state, const AdamOptions& options, T*) const {
  adam_step(parameter, state, options, options.weight_decay, 0);
}

template <class T>
void AdamW<T>::update(Parameter<T>& parameter, AdamState<T>& state, const AdamWOptions& options, T*) const {
  adam_step(parameter, state, options, 0, options.weight_decay);
}

#define INSTANTIATE(T)                                            \
  template class GroupedOptimizer<T, AdamOptions, AdamState<T>>;  \
  template class GroupedOptimizer<T, AdamWOptions, AdamState<T>>; \
  template class Adam<T>;                                         \
  template class AdamW<T>;
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
