/// Stochastic gradient descent.
#pragma once

#include "optimizer.hpp"

namespace tapegrad {

/// The options of SGD, by PyTorch's names.
struct SGDOptions {
  double lr = 1e-3;         ///< learning rate
  double momentum = 0;      ///< how much of the previous step each step keeps
  double dampening = 0;     ///< how much less than its whole a new gradient counts in the momentum
  double weight_decay = 0;  ///< adds this much of the parameter to its gradient
  bool nesterov = false;    ///< looks one step of momentum ahead (Sutskever et al. 2013)
  TAPEGRAD_FIELDS(lr, momentum, dampening, weight_decay, nesterov)
};

/// What SGD keeps for a parameter.
template <class T> struct SGDState {
  StateArray<T> momentum_buffer;  ///< b
  /// Of a parameter of that shape that has not made a step.
  explicit SGDState(const Shape& shape) : momentum_buffer(shape) {}
  /// Takes all memory that steps with these options need.
  void reserve(const SGDOptions& options) {
    if (options.momentum != 0) momentum_buffer.reserve();
  }
  TAPEGRAD_FIELDS(momentum_buffer)
};

/// Stochastic gradient descent, as PyTorch has it. With the gradient g of a parameter p,
///
///     g += weight_decay p
///     b  = momentum b + (1 - dampening) g      (the first time, b = g)
///     p -= lr (nesterov ? g + momentum b : b)  (without momentum, lr g)
template <class T> class SGD : public GroupedOptimizer<T, SGDOptions, SGDState<T>> {
 public:
  /// Throws std::invalid_argument when there are no parameters or one is undefined or there twice, for options that are
  /// negative or not finite, and for nesterov without momentum or with dampening.
  explicit SGD(Parameters<T> parameters, const SGDOptions& options = {});

 private:
  void update(Parameter<T>& parameter, SGDState<T>& state, const SGDOptions& options) const override;
};

}  // namespace tapegrad
