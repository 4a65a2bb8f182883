// A user-defined model: its fields have PyTorch's names, it learns, and a copy is independent.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include <algorithm>
#include <stdexcept>

#include "check.hpp"

namespace tg = tapegrad;

template <class T = float> struct Classifier {
  tg::Embedding<T> letters{11, 16};
  tg::MultiHeadAttention<T> attention{16, 2};
  tg::Linear<T> head{16, 3};
  TAPEGRAD_FIELDS(letters, attention, head)

  /// (batch, time) -> (batch, 3)
  tg::Tensor<T> operator()(const tg::IntArray& ids) const { return head(tg::mean(attention(letters(ids)), {1})); }
};

int main() {
  tg::manual_seed(11);
  const tg::IntArray words{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {3, 2, 2}, {10, 0, 10}}, classes{0, 1, 2, 1, 0};

  Classifier<> model;
  check(tg::count_parameters(model) == 11 * 16 + 4 * (16 * 16 + 16) + 16 * 3 + 3);
  const auto named = tg::named_parameters(model);
  for (const char* name : {"letters.weight", "attention.q_proj.weight", "attention.out_proj.bias", "head.bias"})
    check(std::any_of(named.begin(), named.end(), [&](const auto& parameter) { return parameter.first == name; }));

  tg::SGD<float> optimizer(tg::parameters(model), {.lr = 0.1, .momentum = 0.9});
  const auto loss = [&] { return tg::cross_entropy(model(words), classes); };
  check(loss().item() > 0.7 && loss().item() < 1.7);  // near log(3)
  for (int step = 0; step < 200; ++step) {
    tg::Tape tape;
    optimizer.zero_grad();
    loss().backward();
    optimizer.step();
  }
  check(loss().item() < 0.1);

  Classifier<> copy = model;
  check_close(copy(words).value(), model(words).value(), 0);
  const tg::Array<float> before = model(words).value();
  copy.head.weight.set_value(xt::zeros<float>({3, 16}));
  check_close(model(words).value(), before, 0);
  check(copy(words).value()(0, 0) == copy.head.bias.value()(0));

  check_error<std::out_of_range>([&] { model({{0, 11}}); }, {"embedding", "11"});
}
