/// Stochastic gradient descent.
#pragma once

#include "optimizer.hpp"

namespace tapegrad {

/// The options of SGD, by PyTorch's names.
struct SGDOptions {
  double lr = 1e-3;         ///< learning rate
  double momentum = 0;      ///< fraction of the previous step kept in each step
  double dampening = 0;     ///< fraction of each new gradient withheld from the momentum buffer
  double weight_decay = 0;  ///< adds this much of the parameter to its gradient
  bool nesterov = false;    ///< looks one step of momentum ahead (Sutskever et al. 2013)
  TAPEGRAD_FIELDS(lr, momentum, dampening, weight_decay, nesterov)
};

/// SGD's state of a parameter.
template <class T> struct SGDState {
  StateArray<T> momentum_buffer;  ///< b
  /// The state before the first step of a parameter of this shape.
  explicit SGDState(const Shape& shape) : momentum_buffer(shape) {}
  /// Allocates all memory for steps with these options.
  void reserve(const SGDOptions& options) {
    if (options.momentum != 0) momentum_buffer.reserve();
  }
  TAPEGRAD_FIELDS(momentum_buffer)
};

/// Stochastic gradient descent, as in PyTorch. With the gradient g of a parameter p,
///
///     g += weight_decay p
///     b  = momentum b + (1 - dampening) g      (the first time, b = g)
///     p -= lr (nesterov ? g + momentum b : b)  (without momentum, lr g)
template <class T> class SGD : public GroupedOptimizer<T, SGDOptions, SGDState<T>> {
 public:
  /// Throws std::invalid_argument without parameters, for an undefined or duplicate one, for negative or non-finite
  /// options, and for nesterov without momentum or with dampening.
  explicit SGD(Parameters<T> parameters, const SGDOptions& options = {})
      : GroupedOptimizer<T, SGDOptions, SGDState<T>>("SGD", std::move(parameters), options) {}

 private:
  void update(Parameter<T>& parameter, SGDState<T>& state, const SGDOptions& options, T* memory) const override;
};

}  // namespace tapegrad
