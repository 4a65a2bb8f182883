// Texts of different lengths, padded per batch, and pooled by attention with one learned query: a text's label is
// whether it contains the token 3.
#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <vector>

#include "check.hpp"

namespace tg = tapegrad;
using Texts = std::vector<std::vector<std::int64_t>>;

struct Model {
  tg::Embedding<> embedding{10, 16, {.padding_idx = 0}};
  tg::Parameter<float> query{tg::normal<float>({1, 1, 16}, 0, 0.1)};
  tg::MultiHeadAttention<> attention{16, 2};
  tg::Linear<> head{16, 2};
  TAPEGRAD_FIELDS(embedding, query, attention, head)

  tg::Tensor<float> operator()(const Texts& texts) const {  // B texts -> (B, 2)
    const auto x = embedding(tg::pad(texts, 0));            // (B, T, 16)
    const auto queries = tg::expand(query, {static_cast<std::ptrdiff_t>(texts.size()), 1, 16});
    const auto pooled = attention(queries, x, x, tg::AttentionMask::valid_lens(tg::lengths(texts)));  // (B, 1, 16)
    return head(tg::squeeze(pooled, 1));
  }
};

int main() {
  tg::manual_seed(8);
  tg::Generator random(9);
  Texts texts(400);
  std::vector<std::int64_t> contains;
  for (auto& text : texts) {
    const tg::Array<float> drawn = tg::uniform<float>({1 + random.next_key() % 12}, 1, 10, random);
    for (const float number : drawn) text.push_back(static_cast<std::int64_t>(number));
    contains.push_back(std::count(text.begin(), text.end(), 3) > 0);
  }
  const tg::IntArray labels = tg::int_array(contains, {400});
  const auto chosen = [&](const tg::IntArray& rows) {
    Texts some;
    for (const std::int64_t row : rows) some.push_back(texts[static_cast<std::size_t>(row)]);
    return some;
  };

  Model model;
  tg::AdamW<float> optimizer(tg::parameters(model), {.lr = 0.01});
  for (int epoch = 0; epoch < 15; ++epoch)
    for (const auto& rows : tg::batches(400, 32)) {
      const tg::Tape tape;
      optimizer.zero_grad();
      tg::cross_entropy(model(chosen(rows)), tg::rows(labels, rows)).backward();
      optimizer.step();
    }
  check(tg::accuracy(model(texts), labels) > 0.97);

  // Padding changes nothing.
  const Texts one{{5, 3}}, padded{{5, 3}, {1, 2, 4, 5, 6, 7, 8}};
  check_close(tg::narrow(model(padded), 0, 0, 1).value(), model(one).value(), 1e-5);
}
