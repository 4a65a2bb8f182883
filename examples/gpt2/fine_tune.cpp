#include "fine_tune.hpp"

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "../common/batches.hpp"
#include "../common/printable.hpp"
#include "../common/progress.hpp"
#include "../common/ranks.hpp"
#include "../common/settings.hpp"
#include "../common/shift.hpp"
#include "../common/text.hpp"
#include "../common/training.hpp"
#include "../gpt/packed_ids.hpp"
#include "../gpt/pieces.hpp"
#include "adapter.hpp"
#include "files.hpp"
#include "score.hpp"
#include "writing.hpp"

namespace tg = tapegrad;

namespace {

/// A text's training and validation data.
struct Texts {
  PackedIds train;
  std::vector<std::int64_t> validate;
  std::string fingerprint;
};

/// Reads a text: nine tenths for training, the rest for validation. Uses only part of the latter, so a validation does
/// not take longer than the steps between two.
Texts read_texts(const Config& config, const Tokenizer& tokenizer, const std::string& file) {
  constexpr std::size_t most_validated = 8192;
  const std::vector<std::int64_t> ids = tokenizer.encode(read_file(file), Special::as_tokens);
  const std::size_t test = ids.size() / 10;
  if (test < 2)
    throw std::runtime_error(file + ": expected a text of at least 20 tokens, got " + std::to_string(ids.size()));
  examples::Fingerprint fingerprint;
  fingerprint.add(config.json.dump());
  fingerprint.add({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids.front()});
  Texts texts{PackedIds(tokenizer.size()), {}, fingerprint.text()};
  texts.train.reserve(ids.size() - test);
  for (std::size_t i = 0; i + test < ids.size(); ++i) texts.train.push_back(ids[i]);
  const auto begin = ids.end() - static_cast<std::ptrdiff_t>(test);
  texts.validate.assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(test, most_validated)));
  std::cout << examples::printable(file) << ": " << examples::with_commas(texts.train.size())
            << " tokens for training, " << examples::with_commas(test) << " for testing\n";
  return texts;
}

tg::Metadata metadata_of(const Gpt2Options& options, const std::string& fingerprint) {
  const SavedFineTuning saved{options.fine_tune, options.training, options.outputs, options.merge, fingerprint};
  return {{SavedFineTuning::entry, nlohmann::json(saved).dump()}};
}

}  // namespace

void save_result(const Pretrained& pretrained, const Gpt2Options& options, const std::string& folder) {
  if (options.saves_updates())
    save_adapter(pretrained, folder);
  else
    save_pretrained(options.merge ? merged(pretrained) : pretrained, folder);
  std::cout << "saved " << examples::printable(folder) << '\n';
}

int fine_tune(Pretrained& pretrained, const Gpt2Options& options) {
  LanguageModel<>& model = pretrained.model;
  const Texts texts = read_texts(pretrained.config, pretrained.tokenizer, options.fine_tune.data);
  if (!options.resume.empty() && examples::read_saved<SavedFineTuning>(options.resume).fingerprint != texts.fingerprint)
    throw std::runtime_error(examples::printable(options.fine_tune.data) +
                             ": expected the run's training text and a folder with the same config.json and tokenizer, "
                             "got others");
  const std::size_t sees = pretrained.config.model.context;
  const std::size_t context =
      options.fine_tune.context > 0 ? options.fine_tune.context : std::min<std::size_t>(sees, 256);
  if (context > sees)
    throw std::runtime_error("--context: expected at most " + std::to_string(sees) + ", the model's context, got " +
                             std::to_string(context));

  model.dropout.p = options.fine_tune.dropout;
  for (auto& block : model.blocks) block.dropout.p = options.fine_tune.dropout;
  if (options.fine_tune.lora > 0) add_updates(model, options.fine_tune.lora, options.fine_tune.lora_alpha);
  tg::train(model);
  const tg::Parameters<float> parameters = trained_parameters(model);
  tg::print(std::cout, model);

  examples::TrainingRun run(model, parameters, options.training, options.resume);
  const tg::mpi::Group ranks;

  Pieces pieces(texts.train, context + 1, options.training.batch_size);
  examples::TrainingHooks hooks = examples::writing_hooks(
      options.outputs, options.page, [&](const std::string& folder) { save_result(pretrained, options, folder); },
      [&](const std::string& file) { tg::save(run, file, metadata_of(options, texts.fingerprint)); });
  hooks.next_loss = [&] {
    examples::Place& place = run.training.place;
    const examples::Padded batch = pieces.next(place);
    if (batch.ids.shape(0) == 0) return examples::StepLoss{{}, 0, 0};
    const auto [ids, next] = examples::shift(batch.ids);
    const examples::OwnDraws own(place.batches_left);
    return examples::StepLoss{tg::cross_entropy(model(ids, options.fine_tune.recompute), next), next.size(),
                              next.size()};
  };
  hooks.validation_loss = [&] {
    tg::eval(model);
    const double loss = score(model, context, texts.validate).mean();
    tg::train(model);
    return loss;
  };
  hooks.compare = [&] { ranks.check_equal(model); };
  hooks.divide_state = options.divide_state;

  const double loss = hooks.validation_loss();
  if (run.training.step == 0) require_finite(loss, options.folder);
  std::cout << "validation loss " << std::fixed << std::setprecision(4) << loss
            << (run.training.step == 0 ? " before training\n" : " so far\n");
  const int status = examples::train(run.training, parameters, options.training, hooks);
  if (examples::is_first_rank() && !options.page.file.empty() && !options.page.text)
    show_step(pretrained, options.page.file, texts.validate, "the test text");
  return status;
}
