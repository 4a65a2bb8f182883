#include "training_options.hpp"

#include <algorithm>
#include <string>

#include "given.hpp"
#include "program.hpp"

namespace examples {

namespace tg = tapegrad;

void add_training_options(CLI::App& app, Given<TrainingOptions>& given, std::uint64_t& seed) {
  using O = TrainingOptions;
  const auto add = [&](const char* name, auto member, const char* type, const CLI::Validator& check, const char* text) {
    given.add(app, name, member, type, check, text)->group("Training");
  };
  add("--steps", &O::steps, "N", whole_number(1), "How many steps to learn in");
  add("--batch-size", &O::batch_size, "N", whole_number(1, 1'000'000), "Texts in a batch");
  add("--accumulate", &O::accumulate, "N", whole_number(1, 1'000'000),
      "Batches whose gradients make one step (default 1)");
  given
      .add_choice<OptimizerKind>(app, "--optimizer", &O::optimizer,
                                 {{"sgd", OptimizerKind::sgd}, {"adamw", OptimizerKind::adamw}},
                                 "What makes steps of gradients")
      ->group("Training");
  add("--lr", &O::lr, "RATE", number(0, 1e6), "Learning rate: how far a step goes");
  add("--lr-floor", &O::lr_floor, "RATE", number(0, 1e6), "What it falls to by the last step (default 0)");
  add("--warmup", &O::warmup, "N", whole_number(0), "Steps in which it rises to --lr first");
  given
      .add_choice<Decay>(app, "--decay", &O::decay,
                         {{"cosine", Decay::cosine}, {"linear", Decay::linear}, {"none", Decay::none}},
                         "Along which line it falls")
      ->group("Training");
  add("--momentum", &O::momentum, "M", number(0, 0.9999), "How much of the last step each step of sgd keeps");
  add("--beta2", &O::beta2, "B", number(0, 0.999999),
      "How much of the mean of squared gradients each step of adamw\nkeeps");
  add("--weight-decay", &O::weight_decay, "D", number(0, 1e6),
      "How fast weights shrink, biases and norms apart: a step takes the\nrate times this much off them");
  add("--clip", &O::clip, "NORM", number(0, 1e6), "Largest norm of all gradients together (0: any)");
  app.add_option("--seed", seed, "Start of the random numbers: the same seed gives the same run")
      ->type_name("N")
      ->check(whole_number(0))
      ->group("Training");
}

void add_validation_options(CLI::App& app, Given<TrainingOptions>& given) {
  given
      .add(app, "--eval-every", &TrainingOptions::eval_every, "N", whole_number(1),
           "Steps from one validation to the next; the last step has one, too")
      ->group("Training");
  given
      .add(app, "--patience", &TrainingOptions::patience, "N", whole_number(1),
           "Validations in turn without a lower loss that end the training\n(default: any number)")
      ->group("Training");
}

void add_ranks_options(CLI::App& app, bool& divide_state) {
  app.add_flag("--divide-state", divide_state,
               "Under mpirun: each rank keeps a part of the optimizer's state\n(ZeRO stage 1), for the same result")
      ->group("Training");
}

void check_training_options(const CLI::App& app, const TrainingOptions& options) {
  const auto given = [&](const char* option) { return app.get_option_no_throw(option) && app.count(option) > 0; };
  const auto refuse = [&](const char* option, const char* expected) {
    if (given(option)) throw CLI::ValidationError(option, expected);
  };
  if (options.optimizer == OptimizerKind::sgd) refuse("--beta2", "expected together with --optimizer adamw");
  if (options.optimizer == OptimizerKind::adamw) refuse("--momentum", "expected together with --optimizer sgd");
  if (options.decay == Decay::none) refuse("--lr-floor", "expected without --decay none, which lets the rate stay");
  if (options.eval_every == 0) refuse("--patience", "expected together with --eval-every");
  if (options.lr_floor > options.lr)
    throw CLI::ValidationError("--lr-floor", "expected a rate below that of --lr, which it falls to");
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
