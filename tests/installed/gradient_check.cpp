// gradcheck accepts a model with correct rules, and names wrong gradients.
#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>

#include "check.hpp"

namespace tg = tapegrad;

struct Model {
  tg::Embedding<double> tokens{5, 4};
  tg::MultiHeadAttention<double> attention{4, 2};
  tg::Linear<double> head{4, 2};
  TAPEGRAD_FIELDS(tokens, attention, head)

  tg::Tensor<double> operator()(const tg::IntArray& ids) const {
    return head(tg::mean(attention(tokens(ids), tg::AttentionMask::causal()), {1}));
  }
};

int main() {
  tg::manual_seed(14);
  Model model;
  const tg::IntArray ids{{0, 1, 4}, {2, 2, 3}}, classes{1, 0};
  check(tg::testing::gradcheck([&] { return tg::cross_entropy(model(ids), classes); }, tg::named_parameters(model)).ok);

  tg::Parameter<double> speed(tg::Array<double>{1.5, -0.5});
  const auto energy = [&] {  // v^2 / 2; the derivative is v, not v / 2
    return tg::record("energy", speed.value() * speed.value() / 2, {speed},
                      [v = speed.shared_value()](const auto& dy, auto& dx) { dx[0] += dy * *v / 2; });
  };
  const auto result = tg::testing::gradcheck([&] { return tg::sum(energy()); }, {{"speed", &speed}});
  check(!result.ok);
  for (const char* word : {"speed", "analytic", "numeric"}) check(result.report.find(word) != std::string::npos);
}
