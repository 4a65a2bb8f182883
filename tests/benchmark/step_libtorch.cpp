// Times training steps of one workload with libtorch's C++ frontend.
#include <torch/torch.h>

#include "workloads.hpp"

using benchmark::Workload;

namespace {

std::int64_t signed_of(std::size_t n) { return std::int64_t(n); }

/// True masks the keys after each query.
torch::Tensor causal_mask(const Workload& w) {
  return torch::ones({signed_of(w.length), signed_of(w.length)}, torch::kBool).triu(1);
}

struct Attention : torch::nn::Module {
  torch::nn::Linear q_proj, k_proj, v_proj, out_proj;
  std::int64_t heads;
  torch::Tensor mask;  // undefined for a classifier

  Attention(const Workload& w, bool bias)
      : q_proj(torch::nn::LinearOptions(signed_of(w.width), signed_of(w.width)).bias(bias)),
        k_proj(q_proj->options),
        v_proj(q_proj->options),
        out_proj(q_proj->options),
        heads(signed_of(w.heads)) {
    register_module("q_proj", q_proj);
    register_module("k_proj", k_proj);
    register_module("v_proj", v_proj);
    register_module("out_proj", out_proj);
    if (w.classes == 0) mask = causal_mask(w);
  }

  torch::Tensor split_heads(const torch::Tensor& x) const {  // (B, T, D) -> (B, H, T, D / H)
    return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor q = split_heads(q_proj(x)), k = split_heads(k_proj(x)), v = split_heads(v_proj(x));
    torch::Tensor scores = torch::matmul(q, k.transpose(-1, -2)) / std::sqrt(double(q.size(3)));
    if (mask.defined()) scores = scores.masked_fill(mask, -1e20);
    return out_proj(torch::matmul(torch::softmax(scores, -1), v).transpose(1, 2).reshape(x.sizes()));
  }
};

struct Model : torch::nn::Module {
  torch::nn::Embedding embedding;
  std::shared_ptr<Attention> attention;
  torch::nn::Linear head;
  bool causal;

  explicit Model(const Workload& w)
      : embedding(signed_of(w.tokens), signed_of(w.width)),
        attention(std::make_shared<Attention>(w, true)),
        head(signed_of(w.width), signed_of(w.classes > 0 ? w.classes : w.tokens)),
        causal(w.classes == 0) {
    register_module("embedding", embedding);
    register_module("attention", attention);
    register_module("head", head);
  }

  torch::Tensor forward(const torch::Tensor& ids) {
    const torch::Tensor y = attention->forward(embedding(ids));
    return head(causal ? y : y.mean(1));
  }
};

struct Block : torch::nn::Module {
  torch::nn::LayerNorm norm1, norm2;
  std::shared_ptr<Attention> attention;
  torch::nn::Linear fc1, fc2;

  explicit Block(const Workload& w)
      : norm1(torch::nn::LayerNormOptions({signed_of(w.width)})),
        norm2(norm1->options),
        attention(std::make_shared<Attention>(w, false)),
        fc1(torch::nn::LinearOptions(signed_of(w.width), signed_of(4 * w.width)).bias(false)),
        fc2(torch::nn::LinearOptions(signed_of(4 * w.width), signed_of(w.width)).bias(false)) {
    register_module("norm1", norm1);
    register_module("norm2", norm2);
    register_module("attention", attention);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(const torch::Tensor& before) {
    const torch::Tensor x = before + attention->forward(norm1(before));
    return x + fc2(torch::gelu(fc1(norm2(x))));
  }
};

/// nanoGPT's model: no biases in linear layers, the embedding is the head.
struct Gpt : torch::nn::Module {
  torch::nn::Embedding tokens, positions;
  std::vector<std::shared_ptr<Block>> blocks;
  torch::nn::LayerNorm norm;

  explicit Gpt(const Workload& w)
      : tokens(signed_of(w.tokens), signed_of(w.width)),
        positions(signed_of(w.length), signed_of(w.width)),
        norm(torch::nn::LayerNormOptions({signed_of(w.width)})) {
    register_module("tokens", tokens);
    register_module("positions", positions);
    register_module("norm", norm);
    for (std::size_t i = 0; i < w.layers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), std::make_shared<Block>(w)));
  }

  torch::Tensor forward(const torch::Tensor& ids) {
    torch::Tensor x = tokens(ids) + positions(torch::arange(ids.size(1)));
    for (const auto& block : blocks) x = block->forward(x);
    return torch::nn::functional::linear(norm(x), tokens->weight);
  }
};

torch::Tensor tensor_of(const std::vector<std::int64_t>& numbers) { return torch::tensor(numbers, torch::kInt64); }

benchmark::Times run(const Workload& w) {
  const torch::Tensor ids =
      tensor_of(benchmark::random_ids(w.batch * w.length, w.tokens)).view({signed_of(w.batch), signed_of(w.length)});
  const torch::Tensor labels = w.classes > 0 ? tensor_of(benchmark::random_ids(w.batch, w.classes)) : ids.flatten();
  const auto time_steps = [&](auto& model, auto optimizer, auto before_step) {
    return benchmark::time_steps(w.seconds, [&] {
      optimizer.zero_grad();
      const torch::Tensor logits = model.forward(ids);
      torch::nn::functional::cross_entropy(logits.flatten(0, -2), labels).backward();
      before_step();
      optimizer.step();
    });
  };
  if (w.layers == 0) {
    Model model(w);
    return time_steps(model, torch::optim::SGD(model.parameters(), torch::optim::SGDOptions(0.01)), [] {});
  }
  Gpt model(w);
  const std::vector<torch::Tensor> parameters = model.parameters();
  return time_steps(model, torch::optim::AdamW(parameters, torch::optim::AdamWOptions(1e-3)),
                    [&] { torch::nn::utils::clip_grad_norm_(parameters, 1.0); });
}

}  // namespace

int main(int argc, char** argv) { return benchmark::run_one(argc, argv, run); }
