#include "adam.hpp"

#include <cmath>

#include "internal/optimizer.hpp"

namespace tapegrad {
namespace {

template <class Options> void check(const char* optimizer, const Options& options) {
  detail::require_option(optimizer, "lr", options.lr);
  detail::require_option(optimizer, "eps", options.eps);
  detail::require_option(optimizer, "weight_decay", options.weight_decay);
  const auto [beta1, beta2] = options.betas;
  detail::require(0 <= beta1 && beta1 < 1 && 0 <= beta2 && beta2 < 1, optimizer,
                  "expected betas of 0 or more and below 1, given ", beta1, " and ", beta2);
}

// `kept` of the parameter is left before the step, and `l2` of it added to its gradient.
template <class T, class Options>
void adam_step(Parameter<T>& parameter, AdamState<T>& state, const Options& options, double kept, double l2) {
  const auto t = static_cast<double>(++state.step);
  const auto [beta1, beta2] = options.betas;
  const auto decay = static_cast<T>(kept), share = static_cast<T>(l2), eps = static_cast<T>(options.eps);
  const auto b1 = static_cast<T>(beta1), new1 = static_cast<T>(1 - beta1);
  const auto b2 = static_cast<T>(beta2), new2 = static_cast<T>(1 - beta2);
  const auto rate = static_cast<T>(options.lr / (1 - std::pow(beta1, t)));
  const auto scale = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, t)));  // of sqrt(v)

  const T* grad = parameter.grad().data();
  T *p = parameter.mutable_value().data(), *m = state.exp_avg.mutable_value().data(),
    *v = state.exp_avg_sq.mutable_value().data();
  detail::for_each_element(parameter.size(), [=](std::size_t i) {
    const T g = detail::decayed(grad[i], share, p[i]);
    m[i] = b1 * m[i] + new1 * g;
    v[i] = b2 * v[i] + new2 * g * g;
    p[i] = decay * p[i] - rate * m[i] / (std::sqrt(v[i]) * scale + eps);
  });
}

}  // namespace

static void check_options(const char* optimizer, const AdamOptions& options) { check(optimizer, options); }
static void check_options(const char* optimizer, const AdamWOptions& options) { check(optimizer, options); }

template <class T>
Adam<T>::Adam(Parameters<T> parameters, const AdamOptions& options)
    : GroupedOptimizer<T, AdamOptions, AdamState<T>>("Adam", std::move(parameters), options) {}

template <class T>
void Adam<T>::update(Parameter<T>& parameter, AdamState<T>& state, const AdamOptions& options) const {
  adam_step(parameter, state, options, 1, options.weight_decay);
}

template <class T>
AdamW<T>::AdamW(Parameters<T> parameters, const AdamWOptions& options)
    : GroupedOptimizer<T, AdamWOptions, AdamState<T>>("AdamW", std::move(parameters), options) {}

template <class T>
void AdamW<T>::update(Parameter<T>& parameter, AdamState<T>& state, const AdamWOptions& options) const {
  adam_step(parameter, state, options, 1 - options.lr * options.weight_decay, 0);
}

#define INSTANTIATE(T)                                            \
  template class GroupedOptimizer<T, AdamOptions, AdamState<T>>;  \
  template class GroupedOptimizer<T, AdamWOptions, AdamState<T>>; \
  template class Adam<T>;                                         \
  template class AdamW<T>;
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
