#include "run.hpp"

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "../common/batches.hpp"
#include "../common/ranks.hpp"
#include "../common/shift.hpp"
#include "../common/training.hpp"
#include "../gpt/pieces.hpp"
#include "evaluate.hpp"
#include "writing.hpp"

namespace tg = tapegrad;

namespace {

tg::Metadata metadata_of(const Writer& writer, const LanguageModelOptions& options, const std::string& fingerprint) {
  tg::Metadata metadata = settings_of(writer);
  const SavedRun saved{options.run, options.model, options.training, options.outputs, fingerprint};
  metadata[SavedRun::entry] = nlohmann::json(saved).dump();
  return metadata;
}

/// The losses of a run's training batches: lines of a list, or pieces of running text.
class TrainingLoss {
 public:
  TrainingLoss(const Texts& texts, const LanguageModelOptions& options, bool of_lines)
      : texts_(texts), recompute_(options.recompute) {
    if (of_lines)
      lines_.emplace(texts.train, options.training.batch_size);
    else
      pieces_.emplace(texts.train.front(), options.model.context + 1, options.training.batch_size);
  }

  /// The model's loss on this rank's part of the batch at `place`. Advances the place.
  examples::StepLoss next(const LanguageModel<>& model, examples::Place& place) {
    const auto batch =
        lines_ ? examples::pad(texts_.train, examples::own_part(lines_->next(place))) : pieces_->next(place);
    const std::size_t labels = batch.tokens - batch.ids.shape(0);  // first ids are not predicted
    if (batch.ids.shape(0) == 0) return {{}, 0, 0};
    const auto [ids, next] = examples::shift(batch.ids);
    const examples::OwnDraws own(place.batches_left);
    return {loss_of(model(ids, recompute_), next, tg::Reduction::mean), labels, batch.tokens};
  }

 private:
  const Texts& texts_;
  bool recompute_;
  std::optional<examples::Batches> lines_;
  std::optional<Pieces> pieces_;
};

template <class Work> double seconds_of(Work work) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::size_t steps_within(double minutes, const Writer& writer, const Texts& texts,
                         const LanguageModelOptions& options) {
  const tg::Generator before = tg::default_generator();
  LanguageModel<> model = writer.model;
  const auto parameters = tg::parameters(model);
  examples::TrainingState trial(parameters, options.training);
  TrainingLoss loss(texts, options, writer.writes_lines());
  const auto step = [&] {
    for (std::size_t i = 0; i < options.training.accumulate; ++i) {
      const tg::Tape tape;
      const examples::StepLoss part = loss.next(model, trial.place);
      if (part.labels > 0) part.loss.backward();
    }
    for (tg::Optimizer<float>* const optimizer : trial.optimizers()) {
      optimizer->step();
      optimizer->zero_grad();
    }
  };
  step();  // the first step also allocates
  std::vector<double> steps;
  double seconds = 0;
  while (steps.size() < 5 || (steps.size() < 100 && seconds < 2)) seconds += steps.emplace_back(seconds_of(step));
  std::nth_element(steps.begin(), steps.begin() + steps.size() / 2, steps.end());
  const double of_validation = seconds_of([&] { mean_loss(model, texts.validate); });
  tg::default_generator() = before;

  const tg::mpi::Group ranks;
  const double each =
      ranks.sum(steps[steps.size() / 2] + of_validation / double(options.training.eval_every)) / double(ranks.size());
  return std::max<std::size_t>(1, static_cast<std::size_t>(60 * minutes / each));
}

int train(Writer& writer, const Texts& texts, const LanguageModelOptions& options, const std::string& fingerprint) {
  const auto parameters = tg::parameters(writer.model);
  examples::TrainingRun run(writer.model, parameters, options.training, options.resume);
  const tg::mpi::Group ranks;

  TrainingLoss loss(texts, options, writer.writes_lines());
  examples::TrainingHooks hooks = examples::writing_hooks(
      options.outputs, options.page, [&](const std::string& file) { save(writer, file); },
      [&](const std::string& file) { tg::save(run, file, metadata_of(writer, options, fingerprint)); });
  hooks.next_loss = [&] { return loss.next(writer.model, run.training.place); };
  hooks.validation_loss = [&] { return mean_loss(writer.model, texts.validate); };
  hooks.on_validation = [&] {
    if (examples::is_first_rank()) std::cout << "sample: " << sample_line(writer, options) << '\n';
  };
  hooks.compare = [&] { ranks.check_equal(writer.model); };
  hooks.divide_state = options.divide_state;
  return examples::train(run.training, parameters, options.training, hooks);
}
