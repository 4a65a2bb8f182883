#include "attention_maps.hpp"

#include <algorithm>
#include <cstddef>

namespace tg = tapegrad;

tg::AttentionMap<float> joined(const std::vector<tg::Tensor<float>>& weights, const std::vector<std::string>& shown) {
  std::vector<tg::AttentionMap<float>> maps;
  for (const auto& of_one : weights) maps.push_back(tg::attention_map(of_one, 0, shown, shown));
  const std::size_t heads = maps.front().weights.shape()[0], size = shown.size();
  const tg::Shape shape{maps.size() * heads, size, size};
  tg::AttentionMap<float> all{shown, shown, tg::Array<float>(shape), tg::Array<float>(shape), maps.size()};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    std::copy_n(maps[i].weights.data(), maps[i].weights.size(), all.weights.data() + i * maps[i].weights.size());
    std::copy_n(maps[i].gradients.data(), maps[i].gradients.size(), all.gradients.data() + i * maps[i].weights.size());
  }
  return all;
}
