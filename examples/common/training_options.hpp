/// Command-line options for training.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>

#include "cli.hpp"

namespace examples {

template <class Options> class Given;

enum class OptimizerKind {
  sgd,
  adamw,
  muon  ///< for the matrices of blocks; adamw for other parameters
};
NLOHMANN_JSON_SERIALIZE_ENUM(OptimizerKind, {{OptimizerKind::sgd, "sgd"},
                                             {OptimizerKind::adamw, "adamw"},
                                             {OptimizerKind::muon, "muon"}})

/// Shape of the learning rate's decay from its peak to its floor at the last step.
enum class Decay { cosine, linear, none };
NLOHMANN_JSON_SERIALIZE_ENUM(Decay, {{Decay::cosine, "cosine"}, {Decay::linear, "linear"}, {Decay::none, "none"}})

struct TrainingOptions {
  std::size_t steps = 1000, batch_size = 32;
  std::size_t accumulate = 1;  ///< batches per step, their gradients averaged
  OptimizerKind optimizer = OptimizerKind::sgd;
  double lr = 0.01, lr_floor = 0;
  std::size_t warmup = 0;  ///< number of steps in which the rate rises to lr
  Decay decay = Decay::none;
  double momentum = 0;         ///< of SGD
  double beta2 = 0.999;        ///< of AdamW
  double weight_decay = 0;     ///< of parameters with two or more axes, not of biases and norms
  double clip = 0;             ///< maximum global gradient norm; 0: unlimited
  std::size_t eval_every = 0;  ///< steps between validations; 0: none
  std::size_t patience = 0;    ///< early stopping after so many validations without a lower loss; 0: never
  bool operator==(const TrainingOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingOptions, steps, batch_size, accumulate, optimizer, lr, lr_floor, warmup,
                                   decay, momentum, beta2, weight_decay, clip, eval_every, patience)

/// Adds the training options and --seed to the command line. add_validation_options adds --eval-every and --patience,
/// for programs with validation data.
void add_training_options(CLI::App& app, Given<TrainingOptions>& given, std::uint64_t& seed);
void add_validation_options(CLI::App& app, Given<TrainingOptions>& given);

/// Adds the options for several ranks.
void add_ranks_options(CLI::App& app, bool& divide_state);

/// Throws CLI::ValidationError if a given option has no effect in combination with the others.
void check_training_options(const CLI::App& app, const TrainingOptions& options);

/// The learning-rate schedule.
tapegrad::Schedule schedule_of(const TrainingOptions& options);

}  // namespace examples
