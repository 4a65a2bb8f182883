#include "train.hpp"

#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>

#include "../common/batches.hpp"
#include "../common/progress.hpp"
#include "../common/ranks.hpp"
#include "split.hpp"

namespace tg = tapegrad;

namespace {

/// The mean loss over all texts. Leaves the model in training mode.
double mean_loss(Model& model, const Sequences& data) {
  tg::eval(model);
  const tg::mpi::Group ranks;  // batches are distributed over the ranks
  double sum = 0;
  std::size_t number = 0;
  in_batches(data.ids, [&](std::span<const std::size_t> chosen, const examples::Padded& batch) {
    if (number++ % ranks.size() != ranks.rank()) return;
    const auto logits = model(batch.ids, batch.keep, data.prior_of(chosen));  // (B, classes)
    sum += double(tg::cross_entropy(logits, data.labels_of(chosen), {.reduction = tg::Reduction::sum}).item());
  });
  tg::train(model);
  return ranks.sum(sum) / double(data.ids.size());
}

std::string kept_weights(const examples::TrainingState& state) {
  std::ostringstream text;
  text << "keeping the weights after " << examples::with_commas(state.best_step)
       << " steps, with the lowest validation loss, " << std::fixed << std::setprecision(4) << state.best_loss << '\n';
  return text.str();
}

}  // namespace

int train(Model& model, const Sequences& data, const Sequences& validation, const examples::TrainingOptions& options,
          const std::string& page, const std::function<void()>& keep, bool divide_state) {
  const tg::mpi::Group ranks;
  ranks.broadcast(model);
  examples::Batches batches(data.ids, options.batch_size);
  const auto parameters = tg::parameters(model);
  examples::TrainingState state(parameters, options);
  tg::train(model);

  examples::TrainingHooks hooks;
  hooks.next_loss = [&] {
    const auto chosen = examples::own_part(batches.next(state.place));
    if (chosen.empty()) return examples::StepLoss{{}, 0, 0};
    const auto [ids, real, tokens] = examples::pad(data.ids, chosen);  // (B, T)
    const examples::OwnDraws draws(state.place.batches_left);
    return examples::StepLoss{tg::cross_entropy(model(ids, real, data.prior_of(chosen)), data.labels_of(chosen)),
                              chosen.size(), tokens};
  };
  hooks.compare = [&] { ranks.check_equal(model); };
  hooks.divide_state = divide_state;
  std::optional<Model> best;
  if (!validation.ids.empty()) {
    hooks.validation_loss = [&] { return mean_loss(model, validation); };
    hooks.on_best = [&] { best = model; };
  }
  hooks.keep = [&] {
    if (best) {
      model = *best;
      std::cout << kept_weights(state);
    }
    keep();
  };
  hooks.page = page;
  return examples::train(state, parameters, options, hooks);
}

Trained learn(std::vector<Example> texts, const std::vector<std::string>& labels, const Options& options,
              const std::function<void(const Classifier&)>& keep) {
  std::vector<Example> held_out;
  if (options.validation > 0) {
    held_out = take_share(texts, options.validation);
    std::cout << examples::with_commas(held_out.size()) << " of them held out for validation\n";
  }
  Trained trained{make_classifier(texts, labels, options), 0};
  Classifier& classifier = trained.classifier;
  tg::print(std::cout, classifier.model);
  Sequences data = classifier.encode(texts);
  data.prior = classifier.bayes.left_out_scores(data.ids, data.labels);
  trained.status = train(
      classifier.model, data, classifier.encode(held_out), options.training_with(texts.size()), options.page.file,
      [&] { keep(classifier); }, options.divide_state);
  return trained;
}
