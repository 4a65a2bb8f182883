#include "training_options.hpp"

#include <algorithm>

#include "given.hpp"
#include "program.hpp"

namespace examples {

namespace tg = tapegrad;

void add_training_options(CLI::App& app, Given<TrainingOptions>& given, std::uint64_t& seed) {
  using O = TrainingOptions;
  const auto add = [&](const char* name, auto member, const char* type, const CLI::Validator& check, const char* text) {
    given.add(app, name, member, type, check, text)->group("Training");
  };
  add("--steps", &O::steps, "N", whole_number(1), "Number of training steps");
  add("--batch-size", &O::batch_size, "N", whole_number(1, 1'000'000), "Texts per batch");
  add("--accumulate", &O::accumulate, "N", whole_number(1, 1'000'000),
      "Batches per step, their gradients averaged (default 1)");
  given
      .add_choice<OptimizerKind>(
          app, "--optimizer", &O::optimizer,
          {{"sgd", OptimizerKind::sgd}, {"adamw", OptimizerKind::adamw}, {"muon", OptimizerKind::muon}},
          "Optimizer; muon trains the blocks' matrices, and adamw the other\nparameters")
      ->group("Training");
  add("--lr", &O::lr, "RATE", number(0, 1e6), "Peak learning rate");
  add("--lr-floor", &O::lr_floor, "RATE", number(0, 1e6), "Learning rate at the last step");
  add("--warmup", &O::warmup, "N", whole_number(0), "Warmup: the first N steps, in which the rate rises to --lr");
  given
      .add_choice<Decay>(app, "--decay", &O::decay,
                         {{"cosine", Decay::cosine}, {"linear", Decay::linear}, {"none", Decay::none}},
                         "Shape of the learning rate's decay")
      ->group("Training");
  add("--momentum", &O::momentum, "M", number(0, 0.9999), "Momentum of sgd");
  add("--beta2", &O::beta2, "B", number(0, 0.999999), "Decay rate of adamw's running mean of squared gradients");
  add("--weight-decay", &O::weight_decay, "D", number(0, 1e6),
      "Weight decay, not applied to biases and norms: each step shrinks\nweights by the learning rate times D");
  add("--clip", &O::clip, "NORM", number(0, 1e6), "Maximum global gradient norm (0: no clipping)");
  app.add_option("--seed", seed, "Seed of the random numbers; equal seeds give equal runs")
      ->type_name("N")
      ->check(whole_number(0))
      ->group("Training");
}

void add_validation_options(CLI::App& app, Given<TrainingOptions>& given) {
  given
      .add(app, "--eval-every", &TrainingOptions::eval_every, "N", whole_number(1),
           "Steps between validations; the last step also has one")
      ->group("Training");
  given
      .add(app, "--patience", &TrainingOptions::patience, "N", whole_number(1),
           "Early stopping after N consecutive validations without a lower loss\n(default: never)")
      ->group("Training");
}

void add_ranks_options(CLI::App& app, bool& divide_state) {
  app.add_flag("--divide-state", divide_state,
               "Under mpirun: divide the optimizer state among the ranks (ZeRO\nstage 1), with the same result")
      ->group("Training");
}

void check_training_options(const CLI::App& app, const TrainingOptions& options) {
  const auto given = [&](const char* option) { return app.get_option_no_throw(option) && app.count(option) > 0; };
  const auto refuse = [&](const char* option, const char* expected) {
    if (given(option)) throw CLI::ValidationError(option, expected);
  };
  if (options.optimizer == OptimizerKind::sgd) refuse("--beta2", "requires --optimizer adamw or muon");
  if (options.optimizer != OptimizerKind::sgd) refuse("--momentum", "requires --optimizer sgd");
  if (options.decay == Decay::none)
    refuse("--lr-floor", "not allowed with --decay none, which keeps the rate constant");
  if (options.eval_every == 0) refuse("--patience", "requires --eval-every");
  if (options.lr_floor > options.lr) throw CLI::ValidationError("--lr-floor", "expected a rate of at most --lr");
}

tg::Schedule schedule_of(const TrainingOptions& options) {
  const std::size_t warmup = std::min(options.warmup, options.steps);
  const tg::DecayOptions decay{
      .peak = options.lr, .floor = options.lr_floor, .steps = std::max<std::size_t>(1, options.steps - warmup)};
  const tg::Schedule falling = options.decay == Decay::cosine   ? tg::cosine_decay(decay)
                               : options.decay == Decay::linear ? tg::linear_decay(decay)
                                                                : tg::constant(options.lr);
  return [=, lr = options.lr](std::size_t step) {
    return step < warmup ? lr * double(step + 1) / double(warmup + 1) : falling(step - warmup);
  };
}

}  // namespace examples
