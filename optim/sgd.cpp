#include "sgd.hpp"

#include "internal/optimizer.hpp"

namespace tapegrad {

static void check_options(const char* optimizer, const SGDOptions& options) {
  detail::require_options(optimizer, {{"lr", options.lr},
                                      {"momentum", options.momentum},
                                      {"dampening", options.dampening},
                                      {"weight_decay", options.weight_decay}});
  detail::require(!options.nesterov || (options.momentum > 0 && options.dampening == 0), optimizer,
                  "expected momentum above 0 and dampening 0 with nesterov, got momentum ", options.momentum,
                  " and dampening ", options.dampening);
}

template <class T>
void SGD<T>::update(Parameter<T>& parameter, SGDState<T>& state, const SGDOptions& options, T*) const {
  const auto lr = static_cast<T>(options.lr), decay = static_cast<T>(options.weight_decay);
  const T* grad = parameter.grad().data();
  T* p = parameter.mutable_value().data();
  if (options.momentum == 0)
    return detail::for_each_element(parameter.size(),
                                    [=](std::size_t i) { p[i] -= lr * detail::decayed(grad[i], decay, p[i]); });
  const bool first = !state.momentum_buffer.has_value();
  const auto momentum = static_cast<T>(options.momentum), fresh = first ? T(1) : static_cast<T>(1 - options.dampening);
  T* b = state.momentum_buffer.mutable_value().data();
  detail::for_each_element(parameter.size(), [=, nesterov = options.nesterov](std::size_t i) {
    const T g = detail::decayed(grad[i], decay, p[i]);
    b[i] = momentum * b[i] + fresh * g;
    p[i] -= lr * (nesterov ? g + momentum * b[i] : b[i]);
  });
}

template class GroupedOptimizer<float, SGDOptions, SGDState<float>>;
template class GroupedOptimizer<double, SGDOptions, SGDState<double>>;
template class SGD<float>;
template class SGD<double>;

}  // namespace tapegrad
