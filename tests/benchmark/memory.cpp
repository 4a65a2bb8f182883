// Prints the memory of a training step of GPT-2's size by its owners, in MiB.
#include <tapegrad/tapegrad.hpp>

#include <cstdio>

#include "gpt.hpp"
#include "workloads.hpp"

namespace tg = tapegrad;
using benchmark::Workload;

namespace {

double in_use() { return static_cast<double>(tg::detail::array_bytes_in_use) / (1 << 20); }

void print(const char* owner, double megabytes) { std::printf("| %s | %.0f |\n", owner, megabytes); }

}  // namespace

int main() {
  const Workload w{"", 4, 64, 768, 12, 50257, 0, 12};
  const double program = benchmark::peak_mb();
  benchmark::Gpt model(w);
  const double weights = in_use();
  const auto parameters = tg::parameters(model);
  tg::AdamW<float> optimizer(parameters, {.lr = 1e-3});
  const tg::IntArray ids = benchmark::array_of(benchmark::random_ids(w.rows(), w.tokens), {w.batch, w.length});

  double forward = 0, gradients = 0, moments = 0;
  for (int step = 0; step < 5; ++step) {
    const tg::Tape tape;
    optimizer.zero_grad();
    const double before = in_use();
    const auto loss = tg::cross_entropy(model(ids), ids);
    forward = in_use() - before;
    loss.backward();
    gradients = in_use() - before;
    tg::clip_grad_norm(parameters, 1.0);
    optimizer.step();
    moments = in_use() - gradients - weights;
  }

  const double logits = static_cast<double>(w.rows() * w.tokens * sizeof(float)) / (1 << 20);
  const double peak = benchmark::peak_mb(), owned = program + weights + moments + gradients;
  std::printf("| owner | MiB |\n|---|--:|\n");
  print("weights", weights);
  print("moments of AdamW", moments);
  print("gradients, after the backward pass", gradients);
  print("the program and its libraries, at the start", program);
  print("arrays of the forward pass, used before the last gradients", forward);
  print("of these the logits; their gradient has the same size", logits);
  print("peak", peak);
  print("peak beyond weights, moments, gradients and the program", peak - owned);
}
