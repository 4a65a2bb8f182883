#include "sgd.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "../engine/error.hpp"
#include "../engine/parallel.hpp"
#include "../engine/shape.hpp"

namespace tapegrad {

using detail::require;

namespace {

void check_option(const char* name, double value) {
  require(value >= 0 && std::isfinite(value), "SGD", "expected ", name, " of 0 or more, given ", value);
}

// One pass over the memory of a parameter, its gradient and its momentum b, null without.
template <class T> void update(T* p, const T* gradient, T* b, std::size_t size, const SGDOptions& options, bool first) {
  const T lr = static_cast<T>(options.lr), momentum = static_cast<T>(options.momentum);
  const T fresh = first ? T(1) : static_cast<T>(1 - options.dampening);
  const T weight_decay = static_cast<T>(options.weight_decay);
  const bool decays = options.weight_decay != 0, nesterov = options.nesterov;
  const auto g_at = [=](std::size_t i) { return decays ? gradient[i] + weight_decay * p[i] : gradient[i]; };
  if (b == nullptr) {
    for (std::size_t i = 0; i < size; ++i) p[i] -= lr * g_at(i);
    return;
  }
  for (std::size_t i = 0; i < size; ++i) {
    const T g = g_at(i);
    b[i] = momentum * b[i] + fresh * g;
    p[i] -= lr * (nesterov ? g + momentum * b[i] : b[i]);
  }
}

}  // namespace

template <class T>
SGD<T>::SGD(std::vector<Parameter<T>*> parameters, const SGDOptions& options)
    : parameters_(std::move(parameters)), momentum_(parameters_.size()), options_(options) {
  check_option("lr", options.lr);
  check_option("momentum", options.momentum);
  check_option("dampening", options.dampening);
  check_option("weight_decay", options.weight_decay);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0), "SGD",
          "expected momentum above 0 and no dampening for nesterov, given momentum ", options.momentum,
          " and dampening ", options.dampening);
  require(!parameters_.empty(), "SGD", "expected parameters, given none");
  for (const Parameter<T>* parameter : parameters_)
    require(parameter != nullptr && parameter->defined(), "SGD", "expected parameters with a value, given one without");
  std::vector<Parameter<T>*> sorted = parameters_;
  std::sort(sorted.begin(), sorted.end(), std::less<>());
  require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), "SGD",
          "expected each parameter once, given one twice");
}

template <class T> void SGD<T>::set_lr(double lr) {
  check_option("lr", lr);
  options_.lr = lr;
}

template <class T> void SGD<T>::zero_grad() {
  for (Parameter<T>* parameter : parameters_) parameter->zero_grad();
}

template <class T> void SGD<T>::step() {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (momentum_[i] && momentum_[i]->shape() != parameters_[i]->shape())
      detail::fail<std::invalid_argument>("SGD", "expected parameters to keep their shapes, but one of shape ",
                                          to_string(momentum_[i]->shape()), " now has ",
                                          to_string(parameters_[i]->shape()));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i]->has_grad()) continue;
    const T* g = parameters_[i]->grad().data();
    Array<T>& value = parameters_[i]->mutable_value();
    const bool first = options_.momentum != 0 && !momentum_[i];
    if (first) momentum_[i].emplace(value.shape(), T(0));
    T *p = value.data(), *b = momentum_[i] ? momentum_[i]->data() : nullptr;
    detail::parallel_for(value.size(), detail::chunks_for(value.size()), [&](std::size_t begin, std::size_t end) {
      update(p + begin, g + begin, b ? b + begin : nullptr, end - begin, options_, first);
    });
  }
}

template class SGD<float>;
template class SGD<double>;

}  // namespace tapegrad
