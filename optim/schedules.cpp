#include "schedules.hpp"

#include <cmath>
#include <numbers>

#include "internal/optimizer.hpp"

namespace tapegrad {

using detail::require, detail::require_options;

namespace {

void require_steps(const char* schedule, const char* name, std::size_t steps) {
  require(steps > 0, schedule, "expected ", name, " of 1 or more, got 0");
}

void require_decay(const char* schedule, double peak, double floor, std::size_t steps) {
  require_options(schedule, {{"peak", peak}, {"floor", floor}});
  require(floor <= peak, schedule, "expected a floor not above the peak, got floor ", floor, " and peak ", peak);
  require_steps(schedule, "steps", steps);
}

// The progress of a step from `first` (0) to `last` (1), clamped; 1 if both are equal.
double progress(std::size_t step, std::size_t first, std::size_t last) {
  return step < last ? static_cast<double>(step - first) / static_cast<double>(last - first) : 1;
}

// Half a cosine from the peak at progress 0 to the floor at progress 1.
double cosine(double peak, double floor, double progress) {
  return floor + (peak - floor) * ((1 + std::cos(std::numbers::pi * progress)) / 2);
}

}  // namespace

Schedule constant(double lr) {
  require_options("constant", {{"lr", lr}});
  return [lr](std::size_t) { return lr; };
}

Schedule step_decay(const StepDecayOptions& options) {
  require_options("step_decay", {{"peak", options.peak}});
  require(options.factor >= 0 && options.factor <= 1, "step_decay", "expected a factor in [0, 1], got ",
          options.factor);
  require_steps("step_decay", "every", options.every);
  return [options](std::size_t step) {
    return options.peak * std::pow(options.factor, static_cast<double>(step / options.every));
  };
}

Schedule linear_decay(const DecayOptions& options) {
  require_decay("linear_decay", options.peak, options.floor, options.steps);
  return
      [options](std::size_t step) { return std::lerp(options.peak, options.floor, progress(step, 0, options.steps)); };
}

Schedule cosine_decay(const DecayOptions& options) {
  require_decay("cosine_decay", options.peak, options.floor, options.steps);
  return [options](std::size_t step) { return cosine(options.peak, options.floor, progress(step, 0, options.steps)); };
}

Schedule warmup_cosine(const WarmupCosineOptions& options) {
  require_decay("warmup_cosine", options.peak, options.floor, options.steps);
  require(options.warmup <= options.steps, "warmup_cosine", "expected a warmup of at most ", options.steps,
          " steps, got ", options.warmup);
  return [options](std::size_t step) {
    const auto [peak, floor, warmup, steps] = options;
    if (step < warmup) return peak * ((static_cast<double>(step) + 1) / (static_cast<double>(warmup) + 1));
    return cosine(peak, floor, progress(step, warmup, steps));
  };
}

}  // namespace tapegrad
