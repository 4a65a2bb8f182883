/// How a model is trained, as the user of a program asks for it.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>

#include "cli.hpp"

namespace examples {

template <class Options> class Given;

enum class OptimizerKind { sgd, adamw };
NLOHMANN_JSON_SERIALIZE_ENUM(OptimizerKind, {{OptimizerKind::sgd, "sgd"}, {OptimizerKind::adamw, "adamw"}})

/// How the learning rate falls from its peak to its floor by the last step.
enum class Decay { cosine, linear, none };
NLOHMANN_JSON_SERIALIZE_ENUM(Decay, {{Decay::cosine, "cosine"}, {Decay::linear, "linear"}, {Decay::none, "none"}})

struct TrainingOptions {
  std::size_t steps = 1000, batch_size = 32;
  std::size_t accumulate = 1;  ///< batches whose gradients make one step
  OptimizerKind optimizer = OptimizerKind::sgd;
  double lr = 0.01, lr_floor = 0;
  std::size_t warmup = 0;  ///< steps in which the rate rises to lr
  Decay decay = Decay::none;
  double momentum = 0;         ///< of SGD
  double beta2 = 0.999;        ///< of AdamW
  double weight_decay = 0;     ///< of parameters with two axes: biases and norms keep theirs
  double clip = 0;             ///< largest norm of all gradients together; 0: any
  std::size_t eval_every = 0;  ///< steps from one validation to the next; 0: none
  std::size_t patience = 0;    ///< validations without a lower loss that end the training; 0: any number
  bool operator==(const TrainingOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingOptions, steps, batch_size, accumulate, optimizer, lr, lr_floor, warmup,
                                   decay, momentum, beta2, weight_decay, clip, eval_every, patience)

/// Describes them, and the seed of the random numbers, to the command line. The last two are for programs that
/// validate while they train.
void add_training_options(CLI::App& app, Given<TrainingOptions>& given, std::uint64_t& seed);
void add_validation_options(CLI::App& app, Given<TrainingOptions>& given);

/// The same of what several ranks do.
void add_ranks_options(CLI::App& app, bool& divide_state);

/// Refuses, with CLI::ValidationError, what was given and does nothing with these options.
void check_training_options(const CLI::App& app, const TrainingOptions& options);

/// The learning rate of each step.
tapegrad::Schedule schedule_of(const TrainingOptions& options);

}  // namespace examples
