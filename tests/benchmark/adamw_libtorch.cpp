// Times libtorch's step of AdamW on 10 million parameters, in one tensor, with its default settings.
#include <torch/torch.h>

#include <cstdio>
#include <vector>

#include "workloads.hpp"

int main() {
  torch::manual_seed(0);
  torch::Tensor p = torch::rand({10'000'000}, torch::requires_grad());
  p.mutable_grad() = torch::rand({10'000'000});
  torch::optim::AdamW optimizer({p}, torch::optim::AdamWOptions().weight_decay(0.1));
  std::vector<double> times;
  optimizer.step();  // touches new memory
  for (int round = 0; round < 21; ++round) times.push_back(benchmark::milliseconds([&] { optimizer.step(); }));
  std::printf("%-40s %6.2f ms\n", "libtorch's AdamW", benchmark::median(times));
}
