/// Adam and AdamW: steps by the mean of the gradients, in units of their root mean square.
#pragma once

#include <array>
#include <cstddef>

#include "optimizer.hpp"

namespace tapegrad {

/// The options of Adam, by PyTorch's names.
struct AdamOptions {
  double lr = 1e-3;                         ///< learning rate
  std::array<double, 2> betas{0.9, 0.999};  ///< how much of the means of g and of g^2 each step keeps
  double eps = 1e-8;                        ///< added to the root mean square
  double weight_decay = 0;                  ///< adds this much of the parameter to its gradient
  TAPEGRAD_FIELDS(lr, betas, eps, weight_decay)
};

/// The options of AdamW, by PyTorch's names.
struct AdamWOptions {
  double lr = 1e-3;                         ///< learning rate
  std::array<double, 2> betas{0.9, 0.999};  ///< how much of the means of g and of g^2 each step keeps
  double eps = 1e-8;                        ///< added to the root mean square
  double weight_decay = 0.01;               ///< a step takes lr times this much off the parameter
  TAPEGRAD_FIELDS(lr, betas, eps, weight_decay)
};

/// What both keep for a parameter.
template <class T> struct AdamState {
  std::size_t step = 0;      ///< how many there were
  StateArray<T> exp_avg;     ///< m, the mean of g
  StateArray<T> exp_avg_sq;  ///< v, the mean of g^2
  /// Of a parameter of that shape that has not made a step.
  explicit AdamState(const Shape& shape) : exp_avg(shape), exp_avg_sq(shape) {}
  /// Takes all memory that steps need.
  template <class Options> void reserve(const Options&) {
    exp_avg.reserve();
    exp_avg_sq.reserve();
  }
  TAPEGRAD_FIELDS(step, exp_avg, exp_avg_sq)
};

/// Adam (Kingma and Ba 2015, arXiv:1412.6980), as PyTorch has it. At step t, with the gradient g of a parameter p,
///
///     g += weight_decay p
///     m  = beta1 m + (1 - beta1) g
///     v  = beta2 v + (1 - beta2) g^2
///     p -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
template <class T> class Adam : public GroupedOptimizer<T, AdamOptions, AdamState<T>> {
 public:
  /// Throws std::invalid_argument when there are no parameters or one is undefined or there twice, and for options that
  /// are negative or not finite or betas of 1 or more.
  explicit Adam(Parameters<T> parameters, const AdamOptions& options = {});

 private:
  void update(Parameter<T>& parameter, AdamState<T>& state, const AdamOptions& options) const override;
};

/// AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101), as PyTorch has it. It is Adam, but weights decay apart from
/// the gradient, by
///
///     p -= lr weight_decay p
///
/// before the step, instead of adding to it.
template <class T> class AdamW : public GroupedOptimizer<T, AdamWOptions, AdamState<T>> {
 public:
  /// Throws as Adam.
  explicit AdamW(Parameters<T> parameters, const AdamWOptions& options = {});

 private:
  void update(Parameter<T>& parameter, AdamState<T>& state, const AdamWOptions& options) const override;
};

}  // namespace tapegrad
