// Times training steps of one workload with tapegrad.
#include <tapegrad/tapegrad.hpp>

#include "gpt.hpp"
#include "workloads.hpp"

namespace tg = tapegrad;
using benchmark::array_of, benchmark::Gpt, benchmark::Workload;

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
