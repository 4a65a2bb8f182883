/// Learning rates that change as training goes on.
#pragma once

#include <cstddef>
#include <functional>

namespace tapegrad {

/// The learning rate of each step, counted from 0; any step may be asked for, in any order:
///
///     const auto rate = tg::warmup_cosine({.peak = 1e-2, .floor = 1e-3, .warmup = 10, .steps = 100});
///     for (std::size_t step = 0; step < 100; ++step) {
///       optimizer.set_lr(rate(step));
///       ...
///
/// What makes one throws std::invalid_argument for rates that are negative or not finite, a floor above the peak, and
/// options of its own as it says.
using Schedule = std::function<double(std::size_t step)>;

/// rate(t) = lr
Schedule constant(double lr);

/// The options of step_decay.
struct StepDecayOptions {
  double peak = 1e-3;     ///< the first rate
  double factor = 0.1;    ///< in [0, 1]
  std::size_t every = 0;  ///< how many steps a rate lasts; 1 or more
};

/// rate(t) = peak factor^floor(t / every), PyTorch's StepLR. Throws for a factor outside [0, 1], and when `every` is 0.
Schedule step_decay(const StepDecayOptions& options);

/// The options of linear_decay and cosine_decay.
struct DecayOptions {
  double peak = 1e-3;     ///< the first rate
  double floor = 0;       ///< the rate from `steps` on
  std::size_t steps = 0;  ///< 1 or more
};

/// rate(t) = peak + (floor - peak) min(t / steps, 1), as PyTorch's LinearLR. Throws when `steps` is 0.
Schedule linear_decay(const DecayOptions& options);

/// rate(t) = floor + (peak - floor) (1 + cos(pi min(t / steps, 1))) / 2 (Loshchilov and Hutter 2017, arXiv:1608.03983),
/// as PyTorch's CosineAnnealingLR until `steps`. Throws when `steps` is 0.
Schedule cosine_decay(const DecayOptions& options);

/// The options of warmup_cosine.
struct WarmupCosineOptions {
  double peak = 1e-3;      ///< the largest rate, that of step `warmup`
  double floor = 0;        ///< the rate from `steps` on
  std::size_t warmup = 0;  ///< how many steps the rate rises; `steps` at most
  std::size_t steps = 0;   ///< 1 or more, the warm-up among them
};

/// A warm-up, then a cosine: rate(t) = peak (t + 1) / (warmup + 1) while t < warmup, and then
///
///     floor + (peak - floor) (1 + cos(pi min((t - warmup) / (steps - warmup), 1))) / 2
///
/// Throws when `steps` is 0 or less than `warmup`.
Schedule warmup_cosine(const WarmupCosineOptions& options);

}  // namespace tapegrad
