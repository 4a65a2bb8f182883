/// The loop that trains a model.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "batches.hpp"
#include "ranks.hpp"
#include "training_options.hpp"

namespace examples {

/// What a run keeps beside its model to go on as if nothing had come between: a field of whatever lists the two.
struct TrainingState {
  std::optional<tapegrad::SGD<float>> sgd;  ///< the optimizer is one of these
  std::optional<tapegrad::AdamW<float>> adamw;
  std::optional<std::size_t> ranks;  ///< on how many it has run, where there were several
  tapegrad::RandomState random;
  Place place;                                                 ///< in the data
  std::size_t step = 0;                                        ///< how many were taken
  double best_loss = std::numeric_limits<double>::infinity();  ///< the lowest of validation
  std::size_t best_step = 0;                                   ///< how many steps had been taken then
  std::size_t validations_since_best = 0;
  TAPEGRAD_FIELDS(sgd, adamw, ranks, random, place, step, best_loss, best_step, validations_since_best)

  /// Makes the optimizer. As in GPT-2, parameters of two axes decay, biases and those of norms do not.
  TrainingState(const tapegrad::Parameters<float>& parameters, const TrainingOptions& options);

  tapegrad::Optimizer<float>& optimizer();

  /// Notes on how many ranks it runs from here on. Says so where the run that it goes on with was on another number:
  /// its sums are rounded in another order then.
  void start_on_ranks();
};

/// What a program does in the loop; what it leaves out is left out.
struct TrainingHooks {
  /// The model's loss on this rank's part of the next batch. What it draws comes from the default generator and the
  /// state's place, on all ranks alike, or in the scope of an OwnDraws.
  std::function<StepLoss()> next_loss;
  /// The loss on other data, every TrainingOptions::eval_every steps and after the last; it draws from neither. The
  /// same on all ranks.
  std::function<double()> validation_loss{};
  std::function<void()> on_best{};        ///< after a validation whose loss is the lowest so far
  std::function<void()> on_validation{};  ///< after each, and after its loss is printed
  std::function<void()> checkpoint{};  ///< keeps the whole run, every so many steps and at the end, on the first rank
  std::size_t checkpoint_every = 0;    ///< 0: only at the end
  std::function<void()> compare{};     ///< throws when the ranks have come apart; every 100 steps, and at the end
  bool divide_state = false;           ///< whether each rank keeps a part of the optimizer's state
  std::function<void()> keep{};        ///< saves what was learned, at the end
  std::string log{}, plot{};  ///< files of a TrainingLog, and of its picture at the end, where gnuplot is installed
  std::string page{};         ///< a file: where the loss is no number any more, a page that opens where NaN began
};

/// Changes the parameters step by step so that the loss falls, reporting on it, until all steps are done, patience is
/// at its end or a signal asks to stop. A step is taken as a whole or not at all: a state that is kept after a signal
/// goes on to the same parameters. A signal that comes before what is to be kept has been does not end the program,
/// unless a second one follows. Gives back the program's exit status: 0, or that of the signal. Throws
/// std::runtime_error when the loss is no number any more. Whatever else ends it, a full disk or the end of memory, is
/// thrown once all that can be kept has been, when it has learned anything.
int train(TrainingState& state, const tapegrad::Parameters<float>& parameters, const TrainingOptions& options,
          const TrainingHooks& hooks);

}  // namespace examples
