// Times training steps of one workload with tapegrad.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include "workloads.hpp"

namespace tg = tapegrad;
using benchmark::Workload;

namespace {

struct Model {
  tg::Embedding<> embedding;
  tg::MultiHeadAttention<> attention;
  tg::Linear<> head;
  bool causal;
  TAPEGRAD_FIELDS(embedding, attention, head)

  explicit Model(const Workload& w)
      : embedding(w.tokens, w.width),
        attention(w.width, w.heads),
        head(w.width, w.classes > 0 ? w.classes : w.tokens),
        causal(w.classes == 0) {}

  tg::Tensor<float> operator()(const tg::IntArray& ids) const {
    const auto x = embedding(ids);  // (B, T, D)
    return causal ? head(attention(x, tg::AttentionMask::causal())) : head(tg::mean(attention(x), {1}));
  }
};

/// nanoGPT's: no biases, the embedding is the head.
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

tg::IntArray array_of(const std::vector<std::int64_t>& numbers, const tg::Shape& shape) {
  tg::IntArray array(shape);
  std::copy(numbers.begin(), numbers.end(), array.begin());
  return array;
}

benchmark::Times run(const Workload& w) {
  if (w.threads > 0) tg::set_num_threads(w.threads);
  const tg::IntArray ids = array_of(benchmark::random_ids(w.batch * w.length, w.tokens), {w.batch, w.length});
  const tg::IntArray labels = w.classes > 0 ? array_of(benchmark::random_ids(w.batch, w.classes), {w.batch}) : ids;
  const auto time_steps = [&](const auto& model, auto optimizer, auto before_step) {
    return benchmark::time_steps(w.seconds, [&] {
      tg::Tape tape;
      optimizer.zero_grad();
      tg::cross_entropy(model(ids), labels).backward();
      before_step();
      optimizer.step();
    });
  };
  if (w.layers == 0) {
    Model model(w);
    return time_steps(model, tg::SGD<float>(tg::parameters(model), {.lr = 0.01}), [] {});
  }
  Gpt model(w);
  const auto parameters = tg::parameters(model);
  return time_steps(model, tg::AdamW<float>(parameters, {.lr = 1e-3}), [&] { tg::clip_grad_norm(parameters, 1.0); });
}

}  // namespace

int main(int argc, char** argv) { return benchmark::run_one(argc, argv, run); }
