// Times training steps of one workload with libtorch's C++ frontend.
#include <torch/torch.h>

#include "workloads.hpp"

using benchmark::Workload;

namespace {

struct Model : torch::nn::Module {
  torch::nn::Embedding embedding;
  torch::nn::Linear q_proj, k_proj, v_proj, out_proj, head;
  std::int64_t heads;
  torch::Tensor mask;  // true hides; undefined for a classifier

  explicit Model(const Workload& w)
      : embedding(std::int64_t(w.tokens), std::int64_t(w.width)),
        q_proj(std::int64_t(w.width), std::int64_t(w.width)),
        k_proj(std::int64_t(w.width), std::int64_t(w.width)),
        v_proj(std::int64_t(w.width), std::int64_t(w.width)),
        out_proj(std::int64_t(w.width), std::int64_t(w.width)),
        head(std::int64_t(w.width), std::int64_t(w.classes > 0 ? w.classes : w.tokens)),
        heads(std::int64_t(w.heads)) {
    register_module("embedding", embedding);
    register_module("q_proj", q_proj);
    register_module("k_proj", k_proj);
    register_module("v_proj", v_proj);
    register_module("out_proj", out_proj);
    register_module("head", head);
    const auto length = std::int64_t(w.length);
    if (w.classes == 0) mask = torch::ones({length, length}, torch::kBool).triu(1);
  }

  torch::Tensor split_heads(const torch::Tensor& x) const {  // (B, T, D) -> (B, H, T, D / H)
    return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
  }

  torch::Tensor forward(const torch::Tensor& ids) {
    const torch::Tensor x = embedding(ids);
    const torch::Tensor q = split_heads(q_proj(x)), k = split_heads(k_proj(x)), v = split_heads(v_proj(x));
    torch::Tensor scores = torch::matmul(q, k.transpose(-1, -2)) / std::sqrt(double(q.size(3)));
    if (mask.defined()) scores = scores.masked_fill(mask, -1e20);
    const torch::Tensor o = torch::matmul(torch::softmax(scores, -1), v).transpose(1, 2).reshape(x.sizes());
    const torch::Tensor y = out_proj(o);
    return head(mask.defined() ? y : y.mean(1));
  }
};

torch::Tensor tensor_of(const std::vector<std::int64_t>& numbers) { return torch::tensor(numbers, torch::kInt64); }

double run(const Workload& w) {
  Model model(w);
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01));
  const torch::Tensor ids = tensor_of(benchmark::random_ids(w.batch * w.length, w.tokens))
                                .view({std::int64_t(w.batch), std::int64_t(w.length)});
  const torch::Tensor labels = w.classes > 0 ? tensor_of(benchmark::random_ids(w.batch, w.classes)) : ids.flatten();
  return benchmark::median_ms([&] {
    optimizer.zero_grad();
    const torch::Tensor logits = model.forward(ids);
    torch::nn::functional::cross_entropy(logits.flatten(0, -2), labels).backward();
    optimizer.step();
  });
}

}  // namespace

int main(int argc, char** argv) { return benchmark::run_one(argc, argv, run); }
