// Causal language models with one head and several: each learns, and no token attends to later ones.
#include <tapegrad/tapegrad.hpp>

#include "check.hpp"

namespace tg = tapegrad;

struct LanguageModel {
  tg::Embedding<> tokens;
  tg::MultiHeadAttention<> attention;
  tg::Linear<> head;
  TAPEGRAD_FIELDS(tokens, attention, head)

  explicit LanguageModel(std::size_t heads) : tokens(9, 24), attention(24, heads), head(24, 9) {}

  /// (batch, time) -> logits (batch, time, 9)
  tg::Tensor<float> operator()(const tg::IntArray& ids) const {
    return head(attention(tokens(ids), tg::AttentionMask::causal()));
  }
};

int main() {
  tg::manual_seed(12);
  const tg::IntArray text{{0, 1, 2, 3, 4, 5}, {8, 6, 4, 2, 0, 1}}, next{{1, 2, 3, 4, 5, 6}, {6, 4, 2, 0, 1, 3}};

  for (const std::size_t heads : {1, 4}) {
    LanguageModel model(heads);
    tg::SGD<float> optimizer(tg::parameters(model), {.lr = 0.5});
    const auto loss = [&] { return tg::cross_entropy(model(text), next); };
    const float before = loss().item();
    for (int step = 0; step < 200; ++step) {
      tg::Tape tape;
      optimizer.zero_grad();
      loss().backward();
      optimizer.step();
    }
    check(loss().item() < 0.5 * before);

    tg::IntArray other = text;
    other(0, 4) = 7;
    const tg::Array<float> old_logits = model(text).value(), new_logits = model(other).value();
    for (std::size_t t = 0; t < 6; ++t) {
      bool equal = true;
      for (std::size_t v = 0; v < 9; ++v) equal = equal && old_logits(0, t, v) == new_logits(0, t, v);
      check(equal == (t < 4));
    }
  }
}
