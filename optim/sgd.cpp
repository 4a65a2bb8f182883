#include "sgd.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "../engine/array/internal/error.hpp"
#include "../engine/array/internal/parallel.hpp"
#include "../engine/array/shape.hpp"
#include "../engine/kernels/vector_loops.hpp"

namespace tapegrad {

using detail::require;

namespace {

void check_option(const char* name, double value) {
  require(value >= 0 && std::isfinite(value), "SGD", "expected ", name, " of 0 or more, given ", value);
}

}  // namespace

template <class T>
SGD<T>::SGD(Parameters<T> parameters, const SGDOptions& options)
    : parameters_(std::move(parameters)), momentum_(parameters_.size()), options_(options) {
  check_option("lr", options.lr);
  check_option("momentum", options.momentum);
  check_option("dampening", options.dampening);
  check_option("weight_decay", options.weight_decay);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0), "SGD",
          "expected momentum above 0 and no dampening for nesterov, given momentum ", options.momentum,
          " and dampening ", options.dampening);
  require(!parameters_.empty(), "SGD", "expected parameters, given none");
  std::vector<const void*> places;
  for (const auto& parameter : parameters_) {
    require(parameter->defined(), "SGD", "expected parameters with a value, given one without");
    places.push_back(parameter.place().get());
  }
  std::sort(places.begin(), places.end(), std::less<>());
  require(std::adjacent_find(places.begin(), places.end()) == places.end(), "SGD",
          "expected each parameter once, given one twice");
}

template <class T> void SGD<T>::set_lr(double lr) {
  check_option("lr", lr);
  options_.lr = lr;
}

template <class T> void SGD<T>::zero_grad() {
  for (const auto& parameter : parameters_) parameter->zero_grad();
}

template <class T> void SGD<T>::step() {
  for (const auto& parameter : parameters_)
    detail::require_usage(!parameter.is_last(), "SGD", "expected parameters of a model, but ", *parameter,
                          " belongs to none any more: its model ended, or was assigned another in its stead");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i]->has_grad()) continue;
    const T* g = parameters_[i]->grad().data();
    Array<T>& value = parameters_[i]->mutable_value();
    const bool first = options_.momentum != 0 && !momentum_[i];
    if (first) momentum_[i].emplace(value.shape(), T(0));
    const detail::SGDStep<T> step{static_cast<T>(options_.lr), static_cast<T>(options_.momentum),
                                  first ? T(1) : static_cast<T>(1 - options_.dampening),
                                  static_cast<T>(options_.weight_decay), options_.nesterov};
    T *p = value.data(), *b = momentum_[i] ? momentum_[i]->data() : nullptr;
    detail::parallel_for(value.size(), detail::chunks_for(value.size()), [&](std::size_t begin, std::size_t end) {
      detail::vector_loops<T>().sgd(p + begin, g + begin, b ? b + begin : nullptr, end - begin, step);
    });
  }
}

template class SGD<float>;
template class SGD<double>;

}  // namespace tapegrad
