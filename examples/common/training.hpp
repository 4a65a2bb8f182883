/// The training loop.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <functional>
#include <iostream>
#include <limits>
#include <optional>
#include <string>

#include "batches.hpp"
#include "output_options.hpp"
#include "ranks.hpp"
#include "step_page.hpp"
#include "training_options.hpp"

namespace examples {

/// The state of a run besides its model, saved with it to resume exactly.
struct TrainingState {
  std::optional<tapegrad::SGD<float>> sgd;  ///< either sgd, or adamw, or both muon and adamw have a value
  std::optional<tapegrad::AdamW<float>> adamw;
  std::optional<tapegrad::Muon<float>> muon;
  std::optional<std::size_t> ranks;  ///< number of ranks in the last run, if several
  tapegrad::RandomState random;
  Place place;                                                 ///< in the training data
  std::size_t step = 0;                                        ///< number of steps so far
  double best_loss = std::numeric_limits<double>::infinity();  ///< lowest validation loss
  std::size_t best_step = 0;                                   ///< value of `step` at that validation
  std::size_t validations_since_best = 0;
  TAPEGRAD_FIELDS(sgd, adamw, muon, ranks, random, place, step, best_loss, best_step, validations_since_best)

  /// Creates the optimizers. As in GPT-2, weight decay applies to parameters with at least two axes: no biases or
  /// norms. Throws std::invalid_argument for muon if the model has no blocks.
  TrainingState(const tapegrad::Parameters<float>& parameters, const TrainingOptions& options);

  Optimizers optimizers();

  /// Stores the current number of ranks. Prints a notice if a resumed run had another number: sums are then rounded in
  /// another order.
  void start_on_ranks();
};

/// A run's saved state. Its options are in the metadata.
template <class Model> struct TrainingRun {
  Model& model;
  TrainingState training;
  TAPEGRAD_FIELDS(model, training)

  /// Starts a run on all ranks, or resumes the one in a file.
  TrainingRun(Model& trained, const tapegrad::Parameters<float>& parameters, const TrainingOptions& options,
              const std::string& resume)
      : model(trained), training(parameters, options) {
    if (!resume.empty()) {
      tapegrad::load(*this, resume);
      std::cout << "resuming at step " << training.step << '\n';
    }
    training.start_on_ranks();
    tapegrad::mpi::Group().broadcast(*this);
  }
};

/// A program's callbacks and files for the training loop. All except next_loss are optional.
struct TrainingHooks {
  /// Returns the model's loss on this rank's part of the next batch. May draw only from the default generator and the
  /// state's place, equally on all ranks or in the scope of an OwnDraws.
  std::function<StepLoss()> next_loss;
  /// Returns the validation loss, equal on all ranks, every TrainingOptions::eval_every steps and after the last one.
  /// Must not change the generator or the place.
  std::function<double()> validation_loss{};
  std::function<void()> on_best{};        ///< after a validation with the lowest loss so far
  std::function<void()> on_validation{};  ///< after each validation, its loss printed
  std::function<void()> checkpoint{};     ///< saves the whole run, on the first rank
  std::size_t checkpoint_every = 0;       ///< interval of checkpoint in steps; 0: only at the end
  std::function<void()> compare{};        ///< throws if the ranks' models differ; every 100 steps and at the end
  bool divide_state = false;              ///< true if each rank stores a part of the optimizer's state
  std::function<void()> keep{};           ///< saves the model, at the end
  std::string log{}, plot{};  ///< files of the TrainingLog and its plot, drawn at the end if gnuplot is installed
  std::string page{};         ///< file of a page about the first non-finite operation, written if the loss diverges
};

/// The hooks that write a run's files. save_model and save_run save to the file with this name.
TrainingHooks writing_hooks(const OutputOptions& outputs, const StepPageOptions& page,
                            const std::function<void(const std::string&)>& save_model,
                            const std::function<void(const std::string&)>& save_run);

/// Trains until all steps are done, patience runs out or a signal requests a stop, printing progress. Returns the
/// program's exit status: 0, or the signal's.
///
/// Steps are atomic, so a run saved after a signal resumes to the same parameters. A signal before the results are
/// saved does not end the program unless a second one follows; before the end of the first step nothing is saved.
/// Throws std::runtime_error if the loss or a weight to be saved is not finite. After other errors, such as a full disk
/// or no memory, saves the results of any completed steps, then rethrows.
int train(TrainingState& state, const tapegrad::Parameters<float>& parameters, const TrainingOptions& options,
          const TrainingHooks& hooks);

}  // namespace examples
