/// The library's side of state_dict.py:
///   state_dict save|load MODEL RESULTS
/// saves or loads a GPT, and writes its logits for some ids.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include <string>
#include <vector>

namespace tg = tapegrad;

struct Gpt {
  tg::Embedding<double> tokens{11, 8}, positions{6, 8};
  std::vector<tg::TransformerBlock<double>> blocks;
  tg::LayerNorm<double> norm{8};
  tg::Array<double> scale{tg::Shape{8}, 0.5};  // a buffer in PyTorch
  TAPEGRAD_FIELDS(tokens, positions, blocks, norm, scale)

  Gpt() {
    for (int i = 0; i < 3; ++i) blocks.emplace_back(8, 2);
  }

  tg::Tensor<double> operator()(const tg::IntArray& ids) const {
    auto x = tokens(ids) + positions(xt::arange<std::int64_t>(6));
    for (const auto& block : blocks) x = block(x, tg::AttentionMask::causal());
    return tg::linear(norm(x) * tg::Tensor<double>(scale), tokens.weight);
  }
};

struct Results {
  tg::IntArray ids{{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 0, 1}};
  tg::Array<double> logits;  // (2, 6, 11)
  TAPEGRAD_FIELDS(ids, logits)
};

int main(int, char** arguments) {
  Gpt gpt;
  if (arguments[1] == std::string("save"))
    tg::save(gpt, arguments[2]);
  else
    tg::load(gpt, arguments[2]);
  Results results;
  results.logits = gpt(results.ids).value();
  tg::save(results, arguments[3]);
}
