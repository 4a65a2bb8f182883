/// Adam and AdamW: steps by the mean of the gradients relative to their root mean square.
#pragma once

#include <array>
#include <cstddef>

#include "optimizer.hpp"

namespace tapegrad {

/// The options of Adam, by PyTorch's names.
struct AdamOptions {
  double lr = 1e-3;                         ///< learning rate
  std::array<double, 2> betas{0.9, 0.999};  ///< fractions of the means of g and g^2 kept in each step
  double eps = 1e-8;                        ///< added to the root mean square
  double weight_decay = 0;                  ///< adds this much of the parameter to its gradient
  TAPEGRAD_FIELDS(lr, betas, eps, weight_decay)
};

/// The options of AdamW, by PyTorch's names.
struct AdamWOptions {
  double lr = 1e-3;                         ///< learning rate
  std::array<double, 2> betas{0.9, 0.999};  ///< fractions of the means of g and g^2 kept in each step
  double eps = 1e-8;                        ///< added to the root mean square
  double weight_decay = 0.01;               ///< fraction of the parameter subtracted in each step, times lr
  TAPEGRAD_FIELDS(lr, betas, eps, weight_decay)
};

/// The state of a parameter for both.
template <class T> struct AdamState {
  std::size_t step = 0;      ///< number of steps so far
  StateArray<T> exp_avg;     ///< m, the mean of g
  StateArray<T> exp_avg_sq;  ///< v, the mean of g^2
  /// The state before the first step of a parameter of this shape.
  explicit AdamState(const Shape& shape) : exp_avg(shape), exp_avg_sq(shape) {}
  /// Allocates all memory for steps.
  template <class Options> void reserve(const Options&) {
    exp_avg.reserve();
    exp_avg_sq.reserve();
  }
  TAPEGRAD_FIELDS(step, exp_avg, exp_avg_sq)
};

/// Adam (Kingma and Ba 2015, arXiv:1412.6980), as in PyTorch. At step t, with the gradient g of a parameter p,
///
///     g += weight_decay p
///     m  = beta1 m + (1 - beta1) g
///     v  = beta2 v + (1 - beta2) g^2
///     p -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
template <class T> class Adam : public GroupedOptimizer<T, AdamOptions, AdamState<T>> {
 public:
  /// Throws std::invalid_argument without parameters, for an undefined or duplicate one, for negative or non-finite
  /// options, and for betas >= 1.
  explicit Adam(Parameters<T> parameters, const AdamOptions& options = {})
      : GroupedOptimizer<T, AdamOptions, AdamState<T>>("Adam", std::move(parameters), options) {}

 private:
  void update(Parameter<T>& parameter, AdamState<T>& state, const AdamOptions& options, T* memory) const override;
};

/// AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101), as in PyTorch: Adam with decoupled weight decay. Instead of
/// changing the gradient, each step starts with
///
///     p -= lr weight_decay p
template <class T> class AdamW : public GroupedOptimizer<T, AdamWOptions, AdamState<T>> {
 public:
  /// Throws like Adam.
  explicit AdamW(Parameters<T> parameters, const AdamWOptions& options = {})
      : GroupedOptimizer<T, AdamWOptions, AdamState<T>>("AdamW", std::move(parameters), options) {}

 private:
  void update(Parameter<T>& parameter, AdamState<T>& state, const AdamWOptions& options, T* memory) const override;
};

}  // namespace tapegrad
