// A small GPT memorizes a sequence of numbers and repeats it, token by token with caches.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include <vector>

#include "check.hpp"

namespace tg = tapegrad;

struct Gpt {
  tg::Embedding<> tokens{10, 16}, positions{12, 16};
  std::vector<tg::TransformerBlock<>> blocks;
  tg::LayerNorm<> norm{16};
  TAPEGRAD_FIELDS(tokens, positions, blocks, norm)

  Gpt() {
    for (int i = 0; i < 2; ++i)
      blocks.emplace_back(16, 2, tg::TransformerBlockOptions{.activation = tg::Activation::silu});
    tg::initialize_gpt2(*this);
  }

  tg::Tensor<float> operator()(const tg::IntArray& ids) const {
    return logits(ids, 0,
                  [](const auto& block, const auto& x, std::size_t) { return block(x, tg::AttentionMask::causal()); });
  }

  tg::Tensor<float> operator()(const tg::IntArray& ids, std::vector<tg::KeyValueCache<>>& caches) const {
    return logits(ids, caches.front().size(),
                  [&](const auto& block, const auto& x, std::size_t i) { return block(x, caches[i]); });
  }

 private:
  // (B, T) -> (B, T, 10)
  template <class Apply> tg::Tensor<float> logits(const tg::IntArray& ids, std::size_t past, Apply apply) const {
    const auto first = static_cast<std::int64_t>(past), count = static_cast<std::int64_t>(ids.shape()[1]);
    auto x = tokens(ids) + positions(xt::arange<std::int64_t>(first, first + count));
    for (std::size_t i = 0; i < blocks.size(); ++i) x = apply(blocks[i], x, i);
    return tg::linear(norm(x), tokens.weight);
  }
};

int main() {
  tg::manual_seed(1);
  Gpt gpt;
  const tg::IntArray rhyme{{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}}, next{{1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}};
  tg::AdamW<float> optimizer(tg::parameters(gpt), {.lr = 1e-2});
  float loss = 0;
  for (int step = 0; step < 100; ++step) {
    tg::Tape tape;
    optimizer.zero_grad();
    const auto mean = tg::cross_entropy(gpt(rhyme), next);
    mean.backward();
    optimizer.step();
    loss = mean.item();
  }
  check(loss < 0.05f);

  std::vector<tg::KeyValueCache<>> caches(gpt.blocks.size());
  tg::IntArray id = tg::int_array({{3}});
  for (const std::int64_t expected : next) {
    id(0, 0) = tg::sample(tg::select(gpt(id, caches), 1, 0).value(), {.temperature = 0})(0);
    check(id(0, 0) == expected);
  }
  check(caches.back().size() == 11);
  const tg::Generator before = tg::default_generator();
  const tg::IntArray drawn = tg::sample(gpt(rhyme).value(), {.temperature = 2, .top_k = 5, .top_p = 0.9});
  tg::default_generator() = before;
  check(tg::sample(gpt(rhyme).value(), {.temperature = 2, .top_k = 5, .top_p = 0.9}) == drawn);
  check_error<std::invalid_argument>([&] { gpt(tg::int_array({{1}, {2}}), caches); }, {"KeyValueCache", "11 tokens"});
}
