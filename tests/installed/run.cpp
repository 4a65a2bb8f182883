// A run with parameter groups, clipping, a schedule and dropout, saved halfway and resumed to the bit.
#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <filesystem>

#include "check.hpp"

namespace tg = tapegrad;

struct Net {
  tg::Linear<> hidden{4, 8};
  tg::Dropout dropout{0.5};
  tg::Linear<> head{8, 3};
  tg::Array<float> mean{tg::Shape{4}, 0.0f};
  TAPEGRAD_FIELDS(hidden, dropout, head, mean)

  tg::Tensor<float> operator()(const tg::Array<float>& x) const {
    return head(dropout(tg::silu(hidden(tg::Tensor<float>(x) - mean))));
  }
};

bool is_matrix(std::string_view, const tg::Parameter<float>& parameter) { return parameter.dimension() == 2; }
bool is_bias(std::string_view name, const tg::Parameter<float>&) { return name.ends_with("bias"); }

struct Run {
  Net net;
  tg::AdamW<float> optimizer{tg::parameters(net, is_matrix), {.weight_decay = 0.1}};
  tg::RandomState random;
  std::size_t step = 0;
  double best = 1e9;
  TAPEGRAD_FIELDS(net, optimizer, random, step, best)

  Run() { optimizer.add_group(tg::parameters(net, is_bias), {.weight_decay = 0}); }

  float train() {
    const tg::Array<float> x = tg::normal<float>({6, 4});
    tg::Tape tape;
    optimizer.zero_grad();
    const tg::Tensor<float> loss = tg::cross_entropy(net(x), tg::IntArray{0, 1, 2, 0, 1, 2});
    loss.backward();
    tg::clip_grad_norm(tg::parameters(net), 1.0);
    optimizer.set_lr(tg::warmup_cosine({.peak = 1e-2, .warmup = 3, .steps = 20})(step++));
    optimizer.step();
    net.mean = 0.9f * net.mean + 0.1f;
    best = std::min<double>(best, loss.item());
    return loss.item();
  }
};

int main() {
  const auto path = std::filesystem::temp_directory_path() / "tapegrad_installed_run.safetensors";
  tg::manual_seed(3);
  Run run;
  for (int i = 0; i < 5; ++i) run.train();
  tg::save(run, path);

  tg::manual_seed(4);
  Run resumed;
  resumed.train();
  tg::manual_seed(5);
  tg::load(resumed, path);
  const tg::Generator kept = tg::default_generator();
  float expected[5];
  {
    Run fresh;
    tg::load(fresh, path);
    for (float& loss : expected) loss = fresh.train();
  }
  tg::default_generator() = kept;
  for (const float loss : expected) check(resumed.train() == loss);
  check(resumed.step == 10 && resumed.optimizer.groups().size() == 2);

  tg::Linear<> head(8, 3);
  tg::load(head, path, {.prefix = "net.head."});
  check(tg::read_safetensors(path).at("step").as<std::uint64_t>()() == 5);
  std::filesystem::remove(path);
}
