#include "train.hpp"

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <iostream>
#include <numeric>
#include <vector>

#include "../common/batches.hpp"
#include "../common/ranks.hpp"
#include "../common/shift.hpp"
#include "../common/training.hpp"

namespace pronounce {

namespace tg = tapegrad;

namespace {

constexpr double label_smoothing = 0.1;  // Szegedy et al. 2016, arXiv:1512.00567

tg::Metadata metadata_of(const Pronouncer& pronouncer, const PronounceOptions& options,
                         const std::string& fingerprint) {
  tg::Metadata metadata = settings_of(pronouncer);
  const SavedRun saved{options.run, options.model, options.training, options.outputs, fingerprint};
  metadata[SavedRun::entry] = nlohmann::json(saved).dump();
  return metadata;
}

/// An evenly spaced part of the pairs, of at most 2,000.
EncodedPairs validation_part(const Pronouncer& pronouncer, const std::vector<Pair>& pairs) {
  const std::size_t count = std::min<std::size_t>(2000, pairs.size());
  std::vector<Pair> part;
  for (std::size_t i = 0; i < count; ++i) part.push_back(pairs[i * pairs.size() / count]);
  return encode(pronouncer, part);
}

/// The mean loss of the targets' ids, without label smoothing. Leaves the model in training mode.
double mean_loss(EncoderDecoder<>& model, const EncodedPairs& pairs) {
  tg::eval(model);
  constexpr std::size_t batch_size = 128;
  std::vector<std::size_t> order(pairs.sources.size());
  std::iota(order.begin(), order.end(), 0);
  const tg::mpi::Group ranks;  // batches are distributed over the ranks
  double loss = 0;
  for (std::size_t start = ranks.rank() * batch_size; start < order.size(); start += ranks.size() * batch_size) {
    const auto chosen = std::span(order).subspan(start, std::min(batch_size, order.size() - start));
    loss += double(loss_of(model, examples::pad(pairs.sources, chosen), examples::pad(pairs.targets, chosen), 0,
                           tg::Reduction::sum)
                       .item());
  }
  tg::train(model);
  std::size_t predicted = 0;
  for (const examples::Ids& ids : pairs.targets) predicted += ids.size() - 1;
  return ranks.sum(loss) / static_cast<double>(predicted);
}

}  // namespace

tg::Tensor<float> loss_of(const EncoderDecoder<>& model, const examples::Padded& sources,
                          const examples::Padded& targets, double smoothing, tg::Reduction reduction) {
  const auto [before, next] = examples::shift(targets.ids);
  return tg::cross_entropy(
      model(sources.ids, sources.keep, before), next,
      {.ignore_index = examples::Vocabulary::padding, .label_smoothing = smoothing, .reduction = reduction});
}

int train(Pronouncer& pronouncer, const Pairs& pairs, const PronounceOptions& options, const std::string& fingerprint) {
  EncoderDecoder<>& model = pronouncer.model;
  const EncodedPairs data = encode(pronouncer, pairs.train), validation = validation_part(pronouncer, pairs.test);
  const auto parameters = tg::parameters(model);
  examples::TrainingRun run(model, parameters, options.training, options.resume);
  const tg::mpi::Group ranks;

  examples::Batches batches(data.targets, options.training.batch_size);
  examples::TrainingHooks hooks = examples::writing_hooks(
      options.outputs, options.page, [&](const std::string& file) { save(pronouncer, file); },
      [&](const std::string& file) { tg::save(run, file, metadata_of(pronouncer, options, fingerprint)); });
  hooks.next_loss = [&] {
    const auto chosen = examples::own_part(batches.next(run.training.place));
    if (chosen.empty()) return examples::StepLoss{{}, 0, 0};
    const examples::Padded sources = examples::pad(data.sources, chosen), targets = examples::pad(data.targets, chosen);
    const std::size_t labels = targets.tokens - chosen.size();  // begin marks are not predicted
    const examples::OwnDraws draws(run.training.place.batches_left);
    return examples::StepLoss{loss_of(model, sources, targets, label_smoothing, tg::Reduction::mean), labels,
                              sources.tokens + targets.tokens};
  };
  hooks.validation_loss = [&] { return mean_loss(model, validation); };
  hooks.compare = [&] { ranks.check_equal(model); };
  hooks.divide_state = options.divide_state;
  return examples::train(run.training, parameters, options.training, hooks);
}

}  // namespace pronounce
