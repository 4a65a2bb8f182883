// Times libtorch's tokens of a GPT of GPT-2's size, written one by one with cached keys and values.
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "workloads.hpp"

namespace {

constexpr std::int64_t vocabulary = 50'257, context = 64, layers = 12, heads = 12, width = 768;

struct Block : torch::nn::Module {
  torch::nn::LayerNorm norm1{torch::nn::LayerNormOptions({width})}, norm2{torch::nn::LayerNormOptions({width})};
  torch::nn::Linear qkv{width, 3 * width}, projection{width, width}, fc1{width, 4 * width}, fc2{4 * width, width};
  torch::Tensor keys, values;  // (H, S, D)

  Block() {
    register_module("norm1", norm1);
    register_module("norm2", norm2);
    register_module("qkv", qkv);
    register_module("projection", projection);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(torch::Tensor x) {  // (1, W) -> (1, W)
    const auto parts = qkv(norm1(x)).view({3, heads, 1, width / heads}).unbind(0);
    keys = keys.defined() ? torch::cat({keys, parts[1]}, 1) : parts[1];
    values = values.defined() ? torch::cat({values, parts[2]}, 1) : parts[2];
    const auto scores = torch::matmul(parts[0], keys.transpose(1, 2)) / std::sqrt(double(width / heads));
    x = x + projection(torch::matmul(torch::softmax(scores, -1), values).view({1, width}));
    return x + fc2(torch::gelu(fc1(norm2(x)), "tanh"));
  }
};

}  // namespace

int main() {
  const torch::NoGradGuard no_gradients;
  torch::nn::Embedding tokens(vocabulary, width), positions(context, width);
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({width}));
  std::vector<Block> blocks(layers);
  std::vector<double> times;
  for (std::int64_t place = 0; place < 40; ++place)
    times.push_back(benchmark::milliseconds([&] {
      const auto id = torch::full({1}, place, torch::kInt64);
      torch::Tensor x = tokens(id) + positions(id);
      for (Block& block : blocks) x = block.forward(x);
      torch::nn::functional::linear(norm(x), tokens->weight);
    }));
  std::printf("width 768, 12 layers: token %.2f ms with libtorch\n", benchmark::median(times));
}
