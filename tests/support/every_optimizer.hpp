/// The optimizers under test, with options for which their state matters.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <type_traits>

#define OPTIMIZERS(T) tapegrad::SGD<T>, tapegrad::Adam<T>, tapegrad::AdamW<T>

template <class Optimizer> constexpr bool is_sgd = std::is_same_v<typename Optimizer::Options, tapegrad::SGDOptions>;

template <class Optimizer> typename Optimizer::Options stateful_options(double lr = 0.1) {
  typename Optimizer::Options options{.lr = lr, .weight_decay = 0.1};
  if constexpr (is_sgd<Optimizer>) options.momentum = 0.9;
  return options;
}
