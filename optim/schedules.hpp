/// Learning rate schedules.
#pragma once

#include <cstddef>
#include <functional>

namespace tapegrad {

/// The learning rate of each step, counted from 0, in any order of steps:
///
///     const auto rate = tg::warmup_cosine({.peak = 1e-2, .floor = 1e-3, .warmup = 10, .steps = 100});
///     for (std::size_t step = 0; step < 100; ++step) {
///       optimizer.set_lr(rate(step));
///       ...
///
/// The functions below throw std::invalid_argument for negative or non-finite rates, a floor above the peak, and the
/// options named at each.
using Schedule = std::function<double(std::size_t step)>;

/// rate(t) = lr
Schedule constant(double lr);

/// The options of step_decay.
struct StepDecayOptions {
  double peak = 1e-3;     ///< the first rate
  double factor = 0.1;    ///< in [0, 1]
  std::size_t every = 0;  ///< number of steps per rate, at least 1
};

/// rate(t) = peak factor^floor(t / every), PyTorch's StepLR. Throws if the factor is outside [0, 1] or `every` is 0.
Schedule step_decay(const StepDecayOptions& options);

/// The options of linear_decay and cosine_decay.
struct DecayOptions {
  double peak = 1e-3;     ///< the first rate
  double floor = 0;       ///< the rate at `steps` and after
  std::size_t steps = 0;  ///< at least 1
};

/// rate(t) = peak + (floor - peak) min(t / steps, 1), like PyTorch's LinearLR. Throws if `steps` is 0.
Schedule linear_decay(const DecayOptions& options);

/// rate(t) = floor + (peak - floor) (1 + cos(pi min(t / steps, 1))) / 2 (Loshchilov and Hutter 2017, arXiv:1608.03983),
/// like PyTorch's CosineAnnealingLR until `steps`. Throws if `steps` is 0.
Schedule cosine_decay(const DecayOptions& options);

/// The options of warmup_cosine.
struct WarmupCosineOptions {
  double peak = 1e-3;      ///< the largest rate, at step `warmup`
  double floor = 0;        ///< the rate at `steps` and after
  std::size_t warmup = 0;  ///< number of steps with a rising rate, at most `steps`
  std::size_t steps = 0;   ///< total number of steps including the warm-up, at least 1
};

/// A warm-up, then a cosine: rate(t) = peak (t + 1) / (warmup + 1) while t < warmup, and then
///
///     floor + (peak - floor) (1 + cos(pi min((t - warmup) / (steps - warmup), 1))) / 2
///
/// Throws if `steps` is 0 or less than `warmup`.
Schedule warmup_cosine(const WarmupCosineOptions& options);

}  // namespace tapegrad
