// Trains a GPT on a file of lowercase names, one per line, and prints invented ones. The whole program is on this page.
//   build/release/examples/microgpt names.txt
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xview.hpp>

#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace tg = tapegrad;
using Ids = std::vector<std::int64_t>;  // 0 to 25 for a to z, 26 before and after a name

struct MicroGpt {
  static constexpr std::size_t kContext = 16, kWidth = 16, kHeads = 4, kVocabulary = 27;
  tg::Embedding<> tokens{kVocabulary, kWidth}, positions{kContext, kWidth};
  tg::TransformerBlock<> block{kWidth, kHeads, {.dropout = 0}};
  tg::Linear<> head{kWidth, kVocabulary};
  TAPEGRAD_FIELDS(tokens, positions, block, head)

  tg::Tensor<float> operator()(const Ids& ids) const {  // T ids -> logits (1, T, 27) of the next ones
    const auto x = tokens(tg::int_array(ids, {1, ids.size()})) + positions(tg::arange(ids.size()));
    return head(block(x, tg::AttentionMask::causal()));
  }
};

int main(int argc, char** argv) {
  std::vector<Ids> names;
  std::ifstream file(argc > 1 ? argv[1] : "");
  for (std::string name; file >> name;) {
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") < MicroGpt::kContext) continue;
    names.push_back({26});
    for (const char c : name.substr(0, MicroGpt::kContext - 1)) names.back().push_back(c - 'a');
  }
  if (names.empty()) return std::cerr << "expected a file of lowercase names: microgpt names.txt\n", 2;
  MicroGpt model;
  tg::Adam<float> adam(tg::parameters(model));
  const tg::Schedule lr = tg::linear_decay({.peak = 0.01, .steps = 2000});
  const tg::IntArray order = tg::random_permutation(names.size());
  double smooth = 3.3;  // moving average of the loss, from log 27: the loss of a guess
  for (std::size_t step = 0; step <= 2000; ++step) {
    const Ids& name = names[std::size_t(order(step % names.size()))];
    Ids next(name.begin() + 1, name.end());
    next.push_back(26);
    const tg::Tape tape;
    const auto loss = tg::cross_entropy(model(name), tg::int_array(next, {1, next.size()}));
    adam.zero_grad();
    loss.backward();
    adam.set_lr(lr(step));
    adam.step();
    smooth += 0.01 * (loss.item() - smooth);
    if (step % 400 == 0) std::cout << "step " << step << ", loss " << smooth << '\n';
  }
  for (int i = 0; i < 10; ++i, std::cout << '\n')
    for (Ids name{26}; name.size() < MicroGpt::kContext; std::cout << char('a' + name.back())) {
      name.push_back(tg::sample<float>(xt::view(model(name).value(), 0, -1), {.temperature = 0.5})());
      if (name.back() == 26) break;
    }
}
