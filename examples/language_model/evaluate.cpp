#include "evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "../common/batches.hpp"
#include "../common/ranks.hpp"
#include "../common/shift.hpp"

namespace tg = tapegrad;
using examples::Ids, examples::Vocabulary;

tg::Tensor<float> loss_of(const tg::Tensor<float>& logits, const tg::IntArray& next, tg::Reduction reduction) {
  tg::CrossEntropyOptions<float> options;
  options.ignore_index = Vocabulary::padding;
  options.reduction = reduction;
  return tg::cross_entropy(logits, next, options);
}

std::size_t predicted_characters(const std::vector<Ids>& sequences) {
  std::size_t count = 0;
  for (const Ids& ids : sequences) count += ids.size() - 1;  // the first is not predicted
  return count;
}

std::vector<Ids> validation_part(const std::vector<Ids>& sequences) {
  constexpr double characters = 25'000;
  const double share = std::min(1.0, characters / static_cast<double>(predicted_characters(sequences)));
  const auto count = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sequences.size())));
  std::vector<Ids> part;
  for (std::size_t i = 0; i < count; ++i) part.push_back(sequences[i * sequences.size() / count]);
  return part;
}

double mean_loss(LanguageModel<>& model, const std::vector<Ids>& sequences) {
  tg::eval(model);
  std::vector<std::size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), 0);
  constexpr std::size_t batch_size = 64;
  const tg::mpi::Group ranks;  // batches are distributed over the ranks
  double loss = 0;
  for (std::size_t start = ranks.rank() * batch_size; start < order.size(); start += ranks.size() * batch_size) {
    const auto chosen = std::span(order).subspan(start, std::min(batch_size, order.size() - start));
    const auto [ids, next] = examples::shift(examples::pad(sequences, chosen).ids);
    loss += double(loss_of(model(ids), next, tg::Reduction::sum).item());
  }
  tg::train(model);
  return ranks.sum(loss) / double(predicted_characters(sequences));
}

double mean_loss_by_frequency(const std::vector<PackedIds>& train, const std::vector<Ids>& test,
                              std::size_t vocabulary) {
  std::vector<double> counts(vocabulary, 1);  // add-one smoothing
  for (const PackedIds& ids : train)
    for (std::size_t t = 1; t < ids.size(); ++t) ++counts[std::size_t(ids[t])];
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);

  double loss = 0;
  for (const Ids& ids : test)
    for (std::size_t t = 1; t < ids.size(); ++t) loss -= std::log(counts[std::size_t(ids[t])] / all);
  return loss / double(predicted_characters(test));
}
