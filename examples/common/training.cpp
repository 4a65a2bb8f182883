#include "training.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <stdexcept>
#include <string>

#include "interrupt.hpp"
#include "program.hpp"
#include "progress.hpp"

namespace examples {

namespace tg = tapegrad;

TrainingOptions GivenTrainingOptions::value_or(const TrainingOptions& defaults) const {
  return {.steps = steps.value_or(defaults.steps),
          .batch_size = batch_size.value_or(defaults.batch_size),
          .lr = lr.value_or(defaults.lr),
          .momentum = momentum.value_or(defaults.momentum),
          .decay = decay.value_or(defaults.decay)};
}

void add_training_options(CLI::App& app, GivenTrainingOptions& given, std::uint64_t& seed) {
  const auto add = [&](const char* name, auto& value, const char* type, const CLI::Validator& check, const char* text) {
    app.add_option(name, value, text)->type_name(type)->check(check)->group("Training");
  };
  add("--steps", given.steps, "N", whole_number(1), "How many batches to learn from");
  add("--batch-size", given.batch_size, "N", whole_number(1, 1'000'000), "Texts in a batch");
  add("--lr", given.lr, "RATE", number(0, 1e6), "Learning rate: how far a step goes");
  add("--momentum", given.momentum, "M", number(0, 0.9999), "How much of the last step each step keeps");
  add_choice<bool>(app, "--decay", given.decay, {{"yes", true}, {"no", false}},
                   "Whether the learning rate falls to 0 by the last step")
      ->group("Training");
  add("--seed", seed, "N", whole_number(0), "Start of the random numbers: the same seed gives the same run");
}

namespace {

/// While it lives, a signal ends a sweep between two of its operations: a large step may take minutes. Parameters
/// change in the optimizer's step alone, so that a step that is left has changed nothing.
class LeavesSweeps {
 public:
  LeavesSweeps(const tg::Parameters<float>& parameters, const Interrupt& interrupt) : parameters_(parameters) {
    for (const auto& parameter : parameters_) parameter->register_hook([&](auto&) { interrupt.check(); });
  }
  ~LeavesSweeps() {
    for (const auto& parameter : parameters_) parameter->remove_hooks();
  }
  LeavesSweeps(const LeavesSweeps&) = delete;
  LeavesSweeps& operator=(const LeavesSweeps&) = delete;

 private:
  const tg::Parameters<float>& parameters_;
};

/// All steps; throws Interrupt::Stopped when a signal asks to stop.
void take_steps(const tg::Parameters<float>& parameters, const TrainingOptions& options,
                const std::function<StepLoss()>& next_loss, const Interrupt& interrupt) {
  tg::SGD<float> optimizer(parameters, {.lr = options.lr, .momentum = options.momentum});
  Progress progress(options.steps, std::max<std::size_t>(1, options.steps / 10));
  const LeavesSweeps leaves_sweeps(parameters, interrupt);
  std::cout << std::flush;  // what is known so far need not wait for the end of the first step

  for (std::size_t step = 0; step < options.steps; ++step) {
    if (options.decay) optimizer.set_lr(options.lr * (1 - double(step) / double(options.steps)));

    tg::Tape tape;
    optimizer.zero_grad();
    interrupt.check();
    const auto [loss, tokens] = next_loss();
    interrupt.check();
    loss.backward();
    optimizer.step();

    progress.report(step, loss.item(), tokens);
    if (!std::isfinite(loss.item()))
      throw std::runtime_error("--lr: expected a learning rate that lets the loss fall, given one under which it is " +
                               std::to_string(loss.item()) + " at step " + std::to_string(step));
  }
}

}  // namespace

int train(const tg::Parameters<float>& parameters, const TrainingOptions& options,
          const std::function<StepLoss()>& next_loss, const std::function<void()>& keep) {
  const Interrupt interrupt;
  try {
    take_steps(parameters, options, next_loss, interrupt);
  } catch (const Interrupt::Stopped&) {
  }
  keep();
  if (interrupt.requested()) std::cout << "stopped early, as you asked; the model is as it is so far\n";
  return interrupt.status();
}

}  // namespace examples
