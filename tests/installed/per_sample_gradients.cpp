// The gradient of each sample's loss: one backward pass per sample over one recording.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xmath.hpp>

#include <vector>

#include "check.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;

int main() {
  tg::manual_seed(4);
  tg::Linear<double> model(3, 2);
  const auto parameters = tg::parameters(model);
  const Array x = tg::normal<double>({5, 3});
  const tg::IntArray labels{0, 1, 1, 0, 1};

  const tg::Tape tape;
  const auto losses = tg::cross_entropy(model(x), labels, {.reduction = tg::Reduction::none});  // (5)
  std::vector<double> norms;
  Array sum(model.weight.shape(), 0.0);
  for (std::size_t i = 0; i < 5; ++i) {
    Array sample(losses.shape(), 0.0);
    sample(i) = 1;
    tg::zero_grad(model);
    losses.backward(sample, tg::retain_graph);
    norms.push_back(tg::grad_norm(parameters));
    sum += model.weight.grad();
  }

  tg::zero_grad(model);
  tg::sum(losses).backward();
  check_close(sum, model.weight.grad(), 1e-12);
  for (const double norm : norms) check(norm > 0);
  check(norms[0] != norms[1]);
}
