#include "run.hpp"

#include <tapegrad/tapegrad.hpp>

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

/// A run's saved state. Its options are in the metadata.
struct Run {
  LanguageModel<>& model;
  examples::TrainingState training;
  TAPEGRAD_FIELDS(model, training)
};

tg::Metadata metadata_of(const Writer& writer, const LanguageModelOptions& options, const std::string& fingerprint) {
  tg::Metadata metadata = settings_of(writer);
  const SavedRun kept{options.run, options.model, options.training, options.outputs, fingerprint};
  metadata[run_entry] = nlohmann::json(kept).dump();
  return metadata;
}

}  // namespace

int train(Writer& writer, const Texts& texts, const LanguageModelOptions& options, const std::string& fingerprint) {
  const auto parameters = tg::parameters(writer.model);
  Run run{writer.model, examples::TrainingState(parameters, options.training)};
  if (!options.resume.empty()) {
    tg::load(run, options.resume);
    std::cout << "resuming at step " << run.training.step << '\n';
  }
  run.training.start_on_ranks();
  const tg::mpi::Group ranks;
  ranks.broadcast(run);

  std::optional<examples::Batches> lines;
  std::optional<Pieces> pieces;
  if (writer.writes_lines())
    lines.emplace(texts.train, options.training.batch_size);
  else
    pieces.emplace(texts.train.front(), writer.options.context + 1, options.training.batch_size);
  const auto next_loss = [&] {
    examples::Place& place = run.training.place;
    const auto batch = lines ? examples::pad(texts.train, examples::own_part(lines->next(place))) : pieces->next(place);
    const std::size_t labels = batch.tokens - batch.ids.shape(0);  // first ids are not predicted
    if (batch.ids.shape(0) == 0) return examples::StepLoss{{}, 0, 0};
    const auto [ids, next] = examples::shift(batch.ids);
    const examples::OwnDraws own(place.batches_left);
    return examples::StepLoss{loss_of(writer.model(ids, options.recompute), next, tg::Reduction::mean), labels,
                              batch.tokens};
  };

  examples::TrainingHooks hooks = examples::writing_hooks(
      options.outputs, options.page, [&](const std::string& file) { save(writer, file); },
      [&](const std::string& file) { tg::save(run, file, metadata_of(writer, options, fingerprint)); });
  hooks.next_loss = next_loss;
  hooks.validation_loss = [&] { return mean_loss(writer.model, texts.validate); };
  hooks.on_validation = [&] {
    if (examples::is_first_rank()) std::cout << "sample: " << sample_line(writer, options) << '\n';
  };
  hooks.compare = [&] { ranks.check_equal(writer.model); };
  hooks.divide_state = options.divide_state;
  return examples::train(run.training, parameters, options.training, hooks);
}
