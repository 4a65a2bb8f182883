/// The loop that trains a model, and its options.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace examples {

struct TrainingOptions {
  std::size_t steps, batch_size;
  double lr, momentum;
  bool decay;  ///< lr falls to 0 in a straight line
};

/// The options as the user gave them: what is good when they are not given depends on what is learned.
struct GivenTrainingOptions {
  std::optional<std::size_t> steps, batch_size;
  std::optional<double> lr, momentum;
  std::optional<bool> decay;

  TrainingOptions value_or(const TrainingOptions& defaults) const;
};

/// Describes them, and the seed of the random numbers, to the command line.
void add_training_options(CLI::App& app, GivenTrainingOptions& given, std::uint64_t& seed);

/// A step's loss, and how many tokens it was taken over.
struct StepLoss {
  tapegrad::Tensor<float> loss;
  std::size_t tokens;
};

/// Changes the parameters step by step so that the loss falls, reporting on it, until all steps are done or a signal
/// asks to stop. next_loss computes the model's loss on the next batch. `keep` saves what was learned: a signal that
/// comes before it has finished does not end the program, unless a second one follows. Gives back the program's exit
/// status: 0, or that of the signal. Throws std::runtime_error when the loss is no number any more.
int train(
    const tapegrad::Parameters<float>& parameters, const TrainingOptions& options,
    const std::function<StepLoss()>& next_loss, const std::function<void()>& keep = [] {});

}  // namespace examples
