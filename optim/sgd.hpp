/// Stochastic gradient descent.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "../engine/tape/parameter.hpp"

namespace tapegrad {

/// The settings of SGD, by PyTorch's names.
struct SGDOptions {
  double lr = 1e-3;         ///< learning rate
  double momentum = 0;      ///< how much of the previous step each step keeps
  double dampening = 0;     ///< how much less than its whole a new gradient counts in the momentum
  double weight_decay = 0;  ///< adds this much of the parameter to its gradient
  bool nesterov = false;    ///< looks one step of momentum ahead (Sutskever et al. 2013)
};

/// PyTorch's SGD: with the gradient g of a parameter p,
///
///     g += weight_decay p
///     b  = momentum b + (1 - dampening) g      (the first time, b = g)
///     p -= lr (nesterov ? g + momentum b : b)  (without momentum, lr g)
template <class T> class SGD {
 public:
  /// It holds the parameters wherever their model moves. Throws std::invalid_argument when there are none or one is
  /// undefined or there twice, for options that are negative or not finite, and for nesterov without momentum or with
  /// dampening.
  explicit SGD(Parameters<T> parameters, const SGDOptions& options = {});

  /// Forgets the gradients.
  void zero_grad();

  /// Changes every parameter that has a gradient; the others keep their value and momentum. Throws std::logic_error
  /// when nobody but the optimizer holds one of the parameters any more.
  void step();

  double lr() const { return options_.lr; }
  /// Throws std::invalid_argument for a rate that is negative or not finite.
  void set_lr(double lr);

 private:
  Parameters<T> parameters_;
  std::vector<std::optional<Array<T>>> momentum_;  // b of each parameter, from its first step on
  SGDOptions options_;
};

}  // namespace tapegrad
