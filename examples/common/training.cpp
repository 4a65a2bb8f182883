#include "training.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <exception>
#include <functional>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "interrupt.hpp"
#include "printable.hpp"
#include "progress.hpp"
#include "training_log.hpp"

namespace examples {

namespace tg = tapegrad;

namespace {

/// True for a matrix in a list of layers, such as blocks.0.attention.q_proj.weight: not for embeddings and heads, nor
/// for the factors of a low-rank update, whose product is the weight's.
bool is_matrix_of_block(const tg::Parameter<float>& parameter) {
  const auto is_index = [](const std::string& part) {
    return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
  };
  std::istringstream parts(parameter.name());
  std::string part;
  bool is_in_list = false;
  while (std::getline(parts, part, '.')) is_in_list |= is_index(part);
  return is_in_list && parameter.dimension() == 2 && parameter.name().find("lora_") == std::string::npos;
}

/// Removes the parameters for which `condition` holds, and returns them.
template <class Condition> tg::Parameters<float> take(tg::Parameters<float>& parameters, Condition condition) {
  const auto taken = std::stable_partition(parameters.begin(), parameters.end(),
                                           [&](const auto& parameter) { return !condition(*parameter); });
  tg::Parameters<float> found(taken, parameters.end());
  parameters.erase(taken, parameters.end());
  return found;
}

}  // namespace

TrainingState::TrainingState(const tg::Parameters<float>& parameters, const TrainingOptions& options) {
  tg::Parameters<float> others = parameters;
  if (options.optimizer == OptimizerKind::muon) {
    const tg::Parameters<float> matrices = take(others, is_matrix_of_block);
    if (matrices.empty())
      throw std::invalid_argument("--optimizer: expected sgd or adamw for a model without trained blocks, got muon");
    muon.emplace(matrices,
                 tg::MuonOptions{.lr = options.lr, .weight_decay = options.weight_decay, .match_rms_adamw = true});
  }
  const auto make = [&]<class Optimizer>(std::optional<Optimizer>& optimizer, typename Optimizer::Options of_all) {
    of_all.weight_decay = options.weight_decay;
    optimizer.emplace(take(others, [](const auto& parameter) { return parameter.dimension() >= 2; }), of_all);
    of_all.weight_decay = 0;
    optimizer->add_group(others, of_all);
  };
  if (options.optimizer == OptimizerKind::sgd)
    make(sgd, {.lr = options.lr, .momentum = options.momentum});
  else
    make(adamw, {.lr = options.lr, .betas = {0.9, options.beta2}});
}

TrainingHooks writing_hooks(const OutputOptions& outputs, const StepPageOptions& page,
                            const std::function<void(const std::string&)>& save_model,
                            const std::function<void(const std::string&)>& save_run) {
  const auto to = [](const std::string& file, const std::function<void(const std::string&)>& save) {
    return file.empty() ? std::function<void()>() : [=] { save(file); };
  };
  TrainingHooks hooks;
  hooks.on_best = to(outputs.best, save_model);
  hooks.keep = to(outputs.save, save_model);
  hooks.checkpoint = to(outputs.checkpoint, save_run);
  hooks.checkpoint_every = outputs.checkpoint_every;
  hooks.log = outputs.log;
  hooks.plot = outputs.plot;
  hooks.page = page.file;
  return hooks;
}

Optimizers TrainingState::optimizers() {
  Optimizers all;
  if (muon) all.push_back(&*muon);  // first: its step needs most memory, and may fail
  if (sgd) all.push_back(&*sgd);
  if (adamw) all.push_back(&*adamw);
  return all;
}

void TrainingState::start_on_ranks() {
  const std::size_t now = tg::mpi::Group().size(), before = ranks.value_or(1);
  if (step > 0 && now != before)
    std::cout << "running on " << now << " ranks, previously on " << before
              << ": the results will not be bit-identical\n";
  ranks.reset();
  if (now > 1) ranks = now;
}

namespace {

/// During its lifetime a signal can abort the backward pass between operations, since a large step may take minutes.
/// Only the optimizer's step changes parameters, so an aborted step leaves them unchanged.
class InterruptibleSweep {
 public:
  InterruptibleSweep(const tg::Parameters<float>& parameters, const Interrupt& interrupt, const TrainingRanks& ranks) {
    if (ranks.are_several()) return;  // ranks wait for each other in the pass
    for (const auto& parameter : parameters)
      hooks_.push_back(parameter->register_hook([&](auto&) { interrupt.check(); }));
  }
  ~InterruptibleSweep() {
    for (tg::HookHandle& hook : hooks_) hook.remove();
  }
  InterruptibleSweep(const InterruptibleSweep&) = delete;
  InterruptibleSweep& operator=(const InterruptibleSweep&) = delete;

 private:
  std::vector<tg::HookHandle> hooks_;
};

/// A step's mean loss and total number of tokens.
struct StepTotal {
  double loss = 0;
  std::size_t tokens = 0;
};

/// Thrown if the loss is not finite; the model is not worth saving.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The remaining steps of a run.
class Steps {
 public:
  Steps(TrainingState& state, const tg::Parameters<float>& parameters, const TrainingOptions& options,
        const TrainingHooks& hooks, const Interrupt& interrupt, TrainingRanks& ranks)
      : state_(state), parameters_(parameters), options_(options), hooks_(hooks), interrupt_(interrupt), ranks_(ranks) {
    if (!hooks.log.empty()) log_.emplace(hooks.log, state.step);
  }

  void run_all() {
    const InterruptibleSweep interruptible_sweep(parameters_, interrupt_, ranks_);
    std::cout << std::flush;  // show earlier output before the first step, which may be long
    try {
      while (state_.step < options_.steps && !out_of_patience()) {
        run_one();
        if (hooks_.compare && state_.step % 100 == 0) hooks_.compare();
        if (hooks_.checkpoint && hooks_.checkpoint_every > 0 && state_.step % hooks_.checkpoint_every == 0) {
          require_finite_weights();
          progress_.aside([&] { ranks_.with_whole_state(hooks_.checkpoint); });
        }
      }
    } catch (const Interrupt::Stopped&) {
    }
    require_finite_weights();
    if (hooks_.compare) hooks_.compare();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void run_one() {
    const auto start = Clock::now();
    if (ranks_.are_several() && ranks_.any(interrupt_.requested())) throw Interrupt::Stopped{};
    const Before before{tg::default_generator(), state_.place};
    const StepTotal total = compute_gradients(before);
    if (!std::isfinite(total.loss)) {
      if (!hooks_.page.empty()) try_to_show_failure(before);
      ranks_.any(false);  // wait for the first rank to write the page
    }
    require_finite("the loss", total.loss);
    const double norm = measure_gradients(), rate = rate_(state_.step);
    require_finite("the gradient norm", norm);
    for (tg::Optimizer<float>* const optimizer : state_.optimizers()) optimizer->set_lr(rate);
    ranks_.step();
    progress_.report(state_.step, total.loss, total.tokens);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

    ++state_.step;
    std::optional<double> validation_loss;
    if (validation_is_due()) progress_.aside([&] { validation_loss = validate(); });
    if (log_) log_->add({state_.step, total.loss, validation_loss, rate, norm, double(total.tokens) / seconds});
  }

  /// Throws Stopped if requested, with one rank. Several ranks stop together, only between steps.
  void throw_if_stopped() const {
    if (!ranks_.are_several()) interrupt_.check();
  }

  /// The sources of a step's random draws, to repeat them.
  struct Before {
    tg::Generator random;
    Place place;
  };

  void draw_again(const Before& before) {
    tg::default_generator() = before.random;
    state_.place = before.place;
  }

  /// Computes the gradients of the mean loss of the step's batches. On an exception, undoes the random draws.
  StepTotal compute_gradients(const Before& before) {
    try {
      for (tg::Optimizer<float>* const optimizer : state_.optimizers()) optimizer->zero_grad();
      StepTotal total;
      for (std::size_t i = 0; i < options_.accumulate; ++i) {
        tg::Tape tape;
        throw_if_stopped();
        const StepLoss part = hooks_.next_loss();
        throw_if_stopped();
        const auto [loss, tokens, share] = ranks_.mean_of(part);
        ranks_.sweep(part, share / double(options_.accumulate), i + 1 == options_.accumulate);
        total.loss += loss / double(options_.accumulate);
        total.tokens += tokens;
      }
      return total;
    } catch (...) {
      draw_again(before);
      throw;
    }
  }

  /// A failure to write the page is only printed: the diverged training is the main error.
  void try_to_show_failure(const Before& before) {
    try {
      show_failure(before);
    } catch (const std::exception& error) {
      std::cout << "no web page of the step: " << one_line(error.what()) << '\n';
    }
  }

  /// Repeats a diverged step up to the first non-finite operation and writes a page about it.
  void show_failure(const Before& before) {
    draw_again(before);
    for (std::size_t i = 0; i < options_.accumulate; ++i) {
      tg::Tape tape({.detect_anomaly = true, .keep_values = true});
      try {
        hooks_.next_loss();
      } catch (const std::runtime_error& error) {
        tg::save_page(tape, hooks_.page, {.title = "Failed training step " + std::to_string(state_.step)});
        std::cout << error.what() << "\nweb page of the step: " << printable(hooks_.page) << '\n';
        return;
      }
    }
  }

  /// Clips the gradients and returns their norm. Returns 0 if neither clipping nor logging needs it.
  double measure_gradients() const {
    if (options_.clip == 0 && !log_) return 0;
    return tg::clip_grad_norm(parameters_, options_.clip > 0 ? options_.clip : std::numeric_limits<double>::infinity());
  }

  /// The loss shows only at the next step that a step made weights infinite.
  void require_finite_weights() const {
    for (const auto& parameter : parameters_)
      for (const float weight : parameter->value()) require_finite("a weight", weight);
  }

  void require_finite(const char* what, double value) const {
    if (std::isfinite(value)) return;
    std::ostringstream message;
    message << "--lr: " << what << " is " << value << " at step " << state_.step << "; use a lower learning rate";
    throw Diverged(message.str());
  }

  bool validation_is_due() const {
    return hooks_.validation_loss && options_.eval_every > 0 &&
           (state_.step % options_.eval_every == 0 || state_.step == options_.steps);
  }

  double validate() {
    const double loss = hooks_.validation_loss();
    const bool is_best = loss < state_.best_loss;
    std::ostringstream line;
    line << "after " << state_.step << (state_.step == 1 ? " step" : " steps") << ": validation loss " << std::fixed
         << std::setprecision(4) << loss;
    std::cout << line.str() << (is_best ? ", the lowest so far\n" : "\n");
    if (is_best) {
      if (hooks_.on_best) hooks_.on_best();
      state_.best_loss = loss;
      state_.best_step = state_.step;
      state_.validations_since_best = 0;
    } else {
      ++state_.validations_since_best;
    }
    if (hooks_.on_validation) hooks_.on_validation();
    std::cout << std::flush;  // the next line may take minutes
    return loss;
  }

  bool out_of_patience() const { return options_.patience > 0 && state_.validations_since_best >= options_.patience; }

  TrainingState& state_;
  const tg::Parameters<float>& parameters_;
  const TrainingOptions& options_;
  const TrainingHooks& hooks_;
  const Interrupt& interrupt_;
  TrainingRanks& ranks_;
  const tg::Schedule rate_ = schedule_of(options_);
  std::optional<TrainingLog> log_;
  Progress progress_{options_.steps, std::max<std::size_t>(1, options_.steps / 10), state_.step};
};

/// Plots the log. A failure, e.g. without gnuplot, is only printed.
void draw(const TrainingHooks& hooks) {
  try {
    draw_log(hooks.log, hooks.plot);
    std::cout << "plot of the losses: " << printable(hooks.plot) << '\n';
  } catch (const std::runtime_error& error) {
    std::cout << "no plot of the losses: " << one_line(error.what()) << '\n';
  }
}

}  // namespace

int train(TrainingState& state, const tg::Parameters<float>& parameters, const TrainingOptions& options,
          const TrainingHooks& hooks) {
  const Interrupt interrupt;
  const std::size_t begin = state.step;
  TrainingRanks ranks(state.optimizers(), parameters, hooks.divide_state);
  std::optional<Steps> steps(std::in_place, state, parameters, options, hooks, interrupt, ranks);
  std::exception_ptr failure;  // the first one; results are saved even after a full disk or no memory
  const auto attempt = [&](const std::function<void()>& work) {
    try {
      if (work) work();
    } catch (const Diverged&) {
      throw;
    } catch (const std::exception&) {
      if (!failure) failure = std::current_exception();
    }
  };
  attempt([&] { steps->run_all(); });
  steps.reset();  // ends the progress line
  if (state.step > (failure ? begin : 0)) {
    // A rank failing alone cannot collect a divided state from the others.
    if (hooks.checkpoint && !(failure && ranks.divides_state()))
      attempt([&] { ranks.with_whole_state(hooks.checkpoint); });
    if (is_first_rank()) attempt(hooks.keep);
  }
  if (failure) std::rethrow_exception(failure);
  ranks.print_state(std::cout);
  if (!hooks.plot.empty()) draw(hooks);
  const bool stopped = ranks.any(interrupt.requested());
  if (stopped)
    std::cout << (state.step > 0 ? "interrupted; keeping the current weights\n"
                                 : "interrupted before the end of the first step; saving nothing\n");
  else if (state.step < options.steps)
    std::cout << "stopped early: no lower validation loss since step " << state.best_step << '\n';
  return stopped && !interrupt.requested() ? 128 + SIGTERM : interrupt.status();  // mpirun signaled another rank
}

}  // namespace examples
