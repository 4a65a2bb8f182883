#include "pairs.hpp"

using examples::Ids;
namespace tg = tapegrad;

IdPairs frequent_pairs(const std::vector<Ids>& texts) {
  std::map<IdPair, std::size_t> counts;
  for (const Ids& ids : texts)
    for (std::size_t t = 1; t < ids.size(); ++t) ++counts[{ids[t - 1], ids[t]}];

  IdPairs frequent;
  for (const auto& [pair, count] : counts)
    if (count > 1) frequent.push_back(pair);
  return frequent;
}

PairEmbedding::PairEmbedding(const IdPairs& pairs, std::size_t width, double init_std)
    : embedding(pairs.size() + 1, width, {.padding_idx = 0}) {
  embedding.weight.set_value(embedding.weight.value() * static_cast<float>(init_std));
  for (const IdPair& pair : pairs) rows.emplace(pair, rows.size() + 1);
}

tg::Tensor<float> PairEmbedding::operator()(const tg::IntArray& ids) const {
  tg::IntArray found(ids.shape(), 0);
  for (std::size_t row = 0; row < ids.shape()[0]; ++row)
    for (std::size_t t = 1; t < ids.shape()[1]; ++t)
      if (const auto pair = rows.find({ids(row, t - 1), ids(row, t)}); pair != rows.end()) found(row, t) = pair->second;
  return embedding(found);
}
