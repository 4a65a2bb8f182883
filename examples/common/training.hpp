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

/// The exit status of a program whose work Ctrl-C cut short, as shells give it.
inline constexpr int stopped_status = 130;

/// Changes the parameters step by step so that the loss falls, reporting on it, until all steps are done or Ctrl-C asks
/// to stop; says whether all are done. next_loss computes the model's loss on the next batch.
/// Throws std::runtime_error when the loss is no number any more.
bool train(const tapegrad::Parameters<float>& parameters, const TrainingOptions& options,
           const std::function<StepLoss()>& next_loss);

}  // namespace examples
