// Times libtorch's step of AdamW on 10 million parameters, in one tensor, with its default settings.
#include <torch/torch.h>

#include <cstdio>

#include "workloads.hpp"

int main() {
  torch::manual_seed(0);
  torch::Tensor p = torch::rand({10'000'000}, torch::requires_grad());
  p.mutable_grad() = torch::rand({10'000'000});
  torch::optim::AdamW optimizer({p}, torch::optim::AdamWOptions().weight_decay(0.1));
  optimizer.step();  // touches new memory
  std::printf("%-40s %6.2f ms\n", "libtorch's AdamW", benchmark::median_milliseconds(21, [&] { optimizer.step(); }));
}
