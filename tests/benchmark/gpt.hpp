/// The benchmarks' GPT, for one and for several processes.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include <algorithm>
#include <vector>

#include "workloads.hpp"

namespace benchmark {

namespace tg = tapegrad;

/// nanoGPT's model: no biases, the embedding is the head.
struct Gpt {
  tg::Embedding<> tokens, positions;
  std::vector<tg::TransformerBlock<>> blocks;
  tg::LayerNorm<> norm;
  TAPEGRAD_FIELDS(tokens, positions, blocks, norm)

  explicit Gpt(const Workload& w)
      : tokens(w.tokens, w.width), positions(w.length, w.width), norm(w.width, {.bias = false}) {
    for (std::size_t i = 0; i < w.layers; ++i)
      blocks.emplace_back(w.width, w.heads, tg::TransformerBlockOptions{.bias = false});
    tg::initialize_gpt2(*this);
  }

  tg::Tensor<float> operator()(const tg::IntArray& ids) const {
    auto x = tokens(ids) + positions(xt::arange<std::int64_t>(std::int64_t(ids.shape()[1])));  // (B, T, D)
    for (const auto& block : blocks) x = block(x, tg::AttentionMask::causal());
    return tg::linear(norm(x), tokens.weight);
  }
};

inline tg::IntArray array_of(const std::vector<std::int64_t>& numbers, const tg::Shape& shape) {
  tg::IntArray array(shape);
  std::copy(numbers.begin(), numbers.end(), array.begin());
  return array;
}

}  // namespace benchmark
