// Prints checksums of losses, gradients, parameters and random numbers, to compare two builds of the library to the
// last bit: diff <(old/bits) <(new/bits)
//
//     bits [TEXT]    runs only the cases whose label contains TEXT, such as "float" or "hooks"
#include "bits.hpp"

#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tg = tapegrad;
using namespace bits;

namespace {

// Prints each gradient and parameter of a model.
template <class M> void print_model(M& model) {
  for (const auto& [name, parameter] : tg::named_parameters(model))
    print_grad(name, *parameter), print(name, *parameter);
}

// Trains a model. Prints the loss and a checksum of all gradients at each step, then each gradient and parameter.
template <class M, class T, class Loss, class BeforeStep>
void train(M& model, tg::Optimizer<T>& optimizer, int steps, Loss loss, BeforeStep before_step) {
  for (int step = 0; step < steps; ++step) {
    tg::Tape tape;
    optimizer.zero_grad();
    const tg::Tensor<T> l = loss();
    l.backward();
    Checksum gradients;
    for (const auto& [name, parameter] : tg::named_parameters(model))
      if (parameter->has_grad()) gradients.add(parameter->grad());
    print("loss of step " + std::to_string(step), l);
    gradients.print("gradients of step " + std::to_string(step));
    before_step(static_cast<std::size_t>(step));
    optimizer.step();
  }
  print_model(model);
}
template <class M, class T, class Loss> void train(M& model, tg::Optimizer<T>& optimizer, int steps, Loss loss) {
  train(model, optimizer, steps, loss, [](std::size_t) {});
}

// ---- models -------------------------------------------------------------------------------------------------------

template <class T> void classifier() {
  struct {
    tg::Embedding<T> letters{40, 64, {.padding_idx = 0}};
    tg::MultiHeadAttention<T> attention{64, 4, {.dropout = 0.1}};
    tg::Linear<T> head{64, 5};
    TAPEGRAD_FIELDS(letters, attention, head)
  } model;
  const tg::IntArray ids = random_ids({24, 20}, 40), labels = random_ids({24}, 5);
  const auto mask = tg::AttentionMask::key_padding(tg::padding_mask(ids, 0));
  tg::SGD<T> optimizer(tg::parameters(model), {.lr = 0.1, .momentum = 0.9});
  train(model, optimizer, 20, [&] {
    return tg::cross_entropy(model.head(tg::mean(model.attention(model.letters(ids), mask), {1})), labels);
  });
}

// A GPT with a tied head, whose blocks run in 0, 1 or 2 levels of recompute.
template <class T> struct Gpt {
  tg::Embedding<T> tokens{50, 48}, positions{40, 48};
  std::vector<tg::TransformerBlock<T>> blocks;
  tg::LayerNorm<T> norm{48};
  TAPEGRAD_FIELDS(tokens, positions, blocks, norm)

  explicit Gpt(const tg::TransformerBlockOptions& options) {
    for (int i = 0; i < 2; ++i) blocks.emplace_back(48, 4, options);
    tg::initialize_gpt2(*this);
  }

  tg::Tensor<T> apply(tg::Tensor<T> x, int levels) const {
    for (const auto& block : blocks) {
      auto apply_block = [&block](const tg::Tensor<T>& h) { return block(h, tg::AttentionMask::causal()); };
      x = levels > 0 ? tg::recompute(std::move(apply_block), x) : apply_block(x);
    }
    return x;
  }
  tg::Tensor<T> loss(const tg::IntArray& ids, int levels = 0) const {
    auto x = tg::dropout(tokens(ids), 0.1) + positions(xt::arange<std::int64_t>(40));
    auto nested = [this](const tg::Tensor<T>& h) { return apply(h, 1); };
    x = levels > 1 ? tg::recompute(std::move(nested), x) : apply(x, levels);
    return tg::cross_entropy(tg::linear(norm(x), tokens.weight), ids);
  }
};

template <class T> void gpts() {
  const tg::TransformerBlockOptions all[] = {
      {.dropout = 0.1, .attention_dropout = 0.1},
      {.activation = tg::Activation::swiglu,
       .bias = false,
       .normalization = tg::Normalization::rms,
       .num_kv_heads = 2,
       .rotary_base = 10000},
      {.dropout = 0.1, .activation = tg::Activation::gelu_tanh, .norm = tg::NormPlacement::last, .num_kv_heads = 1},
      {.activation = tg::Activation::silu, .norm = tg::NormPlacement::none, .rotary_base = 100}};
  const tg::Schedule rate = tg::warmup_cosine({.peak = 0.01, .floor = 0.001, .warmup = 3, .steps = 10});
  const std::string before = context;
  for (const auto& options : all) {
    context = before + "blocks " + std::to_string(&options - all) + ": ";
    Gpt<T> model(options);
    tg::AdamW<T> optimizer(tg::parameters(model), {.lr = 0.01, .weight_decay = 0.1});
    const auto loss = [&] { return model.loss(random_ids({4, 40}, 50)); };
    train(model, optimizer, 10, loss, [&](std::size_t step) {
      print("norm", tg::array<double>({tg::clip_grad_norm(tg::parameters(model), 1.0)}));
      optimizer.set_lr(rate(step));
    });
    tg::eval(model);
    print("loss in evaluation", model.loss(random_ids({2, 40}, 50)));
  }
}

template <class T> void encoder() {
  struct {
    tg::Embedding<T> words{30, 24};
    tg::TransformerBlock<T> block{24, 3, {.norm = tg::NormPlacement::last, .normalization = tg::Normalization::rms}};
    tg::LayerNorm<T> norm{24, {.bias = false}}, uncentered{24, {.center = false}};
    tg::RMSNorm<T> rms{24};
    tg::MultiHeadAttention<T> cross{24, 4, {.key_dim = 24, .value_dim = 30, .num_kv_heads = 2, .bias = false}};
    tg::Linear<T> values{24, 30}, head{24, 1};
    TAPEGRAD_FIELDS(words, block, norm, uncentered, rms, cross, values, head)
  } model;
  tg::Adam<T> optimizer(tg::parameters(model), {.lr = 0.01, .weight_decay = 0.01});
  const auto lengths = tg::AttentionMask::valid_lens(tg::int_array({7, 0, 11, 3, 9}));
  train(model, optimizer, 6, [&] {
    const auto memory = model.norm(model.block(model.words(random_ids({5, 11}, 30)), lengths));
    const auto queries = model.uncentered(model.words(random_ids({5, 6}, 30, 8)));
    const auto [weighted, weights] = model.cross.with_weights(queries, memory, model.values(memory), lengths);
    const auto y = model.rms(queries + weighted + model.cross(queries, memory, model.values(memory), lengths));
    return tg::mse_loss(model.head(y), random_array<T>({5, 6, 1})) + tg::mean(weights * weights);
  });
}

template <class T> void recomputation() {
  for (const int levels : {0, 1, 2}) {
    tg::manual_seed(2);
    Gpt<T> model({.dropout = 0.1, .attention_dropout = 0.1});
    tg::SGD<T> sgd(tg::parameters(model), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
    train(model, sgd, 3, [&] { return model.loss(random_ids({4, 40}, 50), levels); });
  }
}

template <class T> void recomputation_and_changes() {
  tg::Parameter<T> w(random_array<T>({6, 6})), x(random_array<T>({3, 6}, 3)), b(random_array<T>({6}, 4));
  w.register_hook([](auto& g) { print("hook", g), g *= T(0.9); });
  tg::Tape tape;
  auto f = [&](const tg::Tensor<T>& h) {
    return tg::tanh(tg::matmul(tg::dropout(h, 0.2), w) + b) + tg::select(w, 0, 1);
  };
  const auto h = tg::recompute(decltype(f)(f), tg::matmul(x, w) * x);
  const auto y = tg::recompute(std::move(f), h) * tg::matmul(h, w) * b;
  const auto loss = tg::sum(y * y) + tg::sum(tg::exp(w));
  w.set_value(random_array<T>({6, 6}, 5)), x.mutable_value()(0, 0) = 3;
  loss.backward(tg::retain_graph);
  print_grad("w", w), print_grad("x", x), print_grad("b", b);
  b.set_requires_grad(false);
  loss.backward();
  print("loss", loss), print_grad("w", w), print_grad("x", x), print_grad("b", b);
}

template <class T> void low_rank() {
  Gpt<T> model({.dropout = 0.1});
  for (const auto& parameter : tg::parameters(model)) parameter->set_requires_grad(false);
  tg::add_low_rank(model, 4, 8);
  tg::AdamW<T> optimizer(tg::parameters(model), {.lr = 0.01});
  for (const int levels : {0, 1})
    train(model, optimizer, 4, [&] { return model.loss(random_ids({4, 40}, 50), levels); });
  tg::merge_low_rank(model);
  print_model(model);
}

template <class T> void frozen_and_tied() {
  struct {
    tg::Embedding<T> words{20, 12};
    tg::Linear<T> first{12, 12}, second{12, 12};
    TAPEGRAD_FIELDS(words, first, second)
  } model;
  tg::SGD<T> optimizer(tg::parameters(model), {.lr = 0.1});
  const auto loss = [&] {
    const auto x = model.second(tg::gelu(model.first(model.first(model.words(random_ids({30}, 20))))));
    return tg::cross_entropy(tg::linear(x, model.words.weight), random_ids({30}, 20, 6));
  };
  train(model, optimizer, 3, loss);
  model.first.weight.set_requires_grad(false);
  train(model, optimizer, 3, loss);
  tg::Tape tape;
  optimizer.zero_grad();
  const auto l = loss();
  model.second.bias.set_requires_grad(false), model.words.weight.set_requires_grad(false);
  l.backward();
  print_model(model);
}

// ---- the tape -----------------------------------------------------------------------------------------------------

template <class T> void hooks() {
  tg::Parameter<T> w(random_array<T>({4, 5})), v(random_array<T>({5}, 3));
  auto handle = w.register_hook([](auto& g) { g *= T(1.1); });
  v.register_hook([n = 0](auto& g) mutable { g += T(++n); });
  for (int pass = 0; pass < 4; ++pass) {
    tg::Tape tape;
    auto h = tg::tanh(w * v), k = h * w;
    h.register_hook([](auto& g) { print("hook", g), g *= T(0.7); });
    h.register_hook([&](auto& g) { g += (tg::sigmoid(w) * tg::Tensor<T>(tg::Array<T>(g))).value(); });
    k.register_hook([&](auto& g) {
      tg::Tape inner;
      const auto x = tg::exp(v * tg::Tensor<T>(tg::Array<T>(g)));
      tg::sum(x * x).backward();
      g -= T(0.01) * x.value();
    });
    h.retain_grad(), k.retain_grad();
    const auto y = tg::sum(h * k + k / (h * h + 2));
    y.backward(tg::retain_graph);
    print_grad("h", h), print_grad("k", k), print_grad("w", w), print_grad("v", v);
    y.backward(tg::retain_graph), k.backward(random_array<T>({4, 5}, 8));
    print_grad("h", h), print_grad("k", k), print_grad("w", w), print_grad("v", v);
    if (pass == 1) handle.remove();
    if (pass == 2) w.remove_hooks(), w.zero_grad();
  }
}

template <class T> void nested_tapes() {
  tg::Parameter<T> w(random_array<T>({5, 5})), b(random_array<T>({5}, 3));
  const tg::Tensor<T> x(random_array<T>({3, 5}, 4));
  auto outer = std::make_unique<tg::Tape>();
  auto h = tg::tanh(tg::matmul(x, w) + b);
  {
    tg::Tape inner;
    (tg::sum(tg::exp(w) * b) + tg::sum(h.detach() * b)).backward();
    print_grad("w", w), print_grad("b", b);
  }
  tg::Tensor<T> constant;
  {
    tg::NoGrad pause;
    constant = tg::matmul(h, w);
    tg::Tape inner;
    tg::sum(tg::sqrt(b * b + 1) * w * constant.shape()[0]).backward();
  }
  w.mutable_value()(0, 0) += T(0.5);
  h = tg::matmul(h, w) * constant + b;
  h.retain_grad();
  tg::sum(h * h).backward();
  print("h", h), print_grad("h", h), print_grad("w", w), print_grad("b", b);
  auto later = std::make_unique<tg::Tape>();
  const auto y = tg::sum(w * b);
  outer.reset();
  y.backward();
  print("y", y), print_grad("w", w), print_grad("b", b);
}

template <class T> void fan_out_and_chain() {
  tg::Parameter<T> w(random_array<T>({3, 7})), u(random_array<T>({3, 7}, 3));
  tg::Tape tape;
  auto x = w * u;
  auto y = x * x + tg::exp(x) - tg::sum(x, {1}, tg::keepdims) / x + x;
  for (int i = 0; i < 5000; ++i) {
    const auto z = y * T(0.999) + w;
    y = i % 3 == 0 ? z * u - z : tg::tanh(z + z);
  }
  tg::sum(y).backward();
  print("y", y), print_grad("w", w), print_grad("u", u);
}

// x² y. The first gradient is added, the second written in place.
template <class T> tg::Tensor<T> square_times(const tg::Tensor<T>& x, const tg::Tensor<T>& y) {
  return tg::record("square_times", tg::Array<T>(x.value() * x.value() * y.value()), {x, y},
                    [x = x.shared_value(), y = y.shared_value()](const auto& dy, auto& dx) {
                      dx[0] += T(2) * *x * *y * dy;
                      if (!dx[1].needs_grad()) return;
                      const auto to = dx[1].destination();
                      for (std::size_t i = 0; i < dy.size(); ++i) {
                        const T g = x->data()[i] * x->data()[i] * dy.data()[i];
                        to.data[i] = to.beta == 0 ? g : to.data[i] + g;
                      }
                    });
}

template <class T> void own_operation() {
  tg::Parameter<T> w(random_array<T>({4, 9})), u(random_array<T>({4, 9}, 3));
  tg::Tape tape;
  const auto h = square_times<T>(w, u), k = square_times<T>(h, h), x = square_times<T>(w, w);
  tg::sum(square_times<T>(k, u) + x * u + square_times<T>(tg::Tensor<T>(random_array<T>({4, 9}, 4)), h)).backward();
  print("k", k), print_grad("w", w), print_grad("u", u);
}

template <class T> void failing_rule() {
  tg::Parameter<T> w(random_array<T>({4, 9})), u(random_array<T>({4, 9}, 3));
  tg::Tape tape;
  const auto h = tg::exp(w * u), y = tg::sum(h * u);
  const auto fail = [](const auto&, auto&) { throw std::runtime_error("a rule that fails"); };
  const auto bad = tg::sum(y * u * tg::record("bad", tg::Array<T>(h.value()), {h}, fail));
  for (int pass = 0; pass < 2; ++pass) {
    try {
      bad.backward(tg::retain_graph);
    } catch (const std::runtime_error&) {
      print_grad("w", w), print_grad("u", u);
    }
    y.backward(tg::retain_graph);
    print_grad("w", w), print_grad("u", u);
  }
}

// Trains a model with random numbers from its own generator. Returns the losses and the parameters.
template <class T> std::vector<tg::Array<T>> train_separately(std::uint64_t seed) {
  tg::Generator generator(seed);
  struct {
    tg::Embedding<T> words;
    tg::MultiHeadAttention<T> attention;
    TAPEGRAD_FIELDS(words, attention)
  } model{{20, 64, {.generator = &generator}}, {64, 2, {.generator = &generator}}};
  tg::AdamW<T> optimizer(tg::parameters(model), {.lr = 0.01});
  std::vector<tg::Array<T>> results;
  for (int step = 0; step < 8; ++step) {
    tg::Tape tape;
    optimizer.zero_grad();
    auto f = [&](const tg::Tensor<T>& x) { return model.attention(tg::dropout(x, 0.1, true, generator)); };
    const auto y = tg::recompute(std::move(f), model.words(random_ids({16, 32}, 20)));
    const auto loss = tg::cross_entropy(tg::linear(y, model.words.weight), random_ids({16, 32}, 20));
    loss.backward();
    optimizer.step();
    results.push_back(loss.value());
  }
  for (const auto& parameter : tg::parameters(model)) results.push_back(parameter->value());
  return results;
}

template <class T> void two_threads() {
  std::vector<tg::Array<T>> results[2];
  std::thread first([&] { results[0] = train_separately<T>(1); }), second([&] { results[1] = train_separately<T>(2); });
  first.join(), second.join();
  for (const auto& arrays : results)
    for (const auto& array : arrays) print("result", array);
}

// ---- all cases ----------------------------------------------------------------------------------------------------

template <class T> std::vector<Case> model_and_tape_cases() {
  return {{"classifier", classifier<T>},
          {"gpt", gpts<T>},
          {"encoder", encoder<T>},
          {"recompute", recomputation<T>},
          {"changes", recomputation_and_changes<T>},
          {"low rank", low_rank<T>},
          {"frozen and tied", frozen_and_tied<T>},
          {"hooks", hooks<T>},
          {"nested tapes", nested_tapes<T>},
          {"fan-out", fan_out_and_chain<T>},
          {"own operation", own_operation<T>},
          {"failing rule", failing_rule<T>},
          {"two std::threads", two_threads<T>}};
}

// Runs the cases whose label contains the text, with one thread and with two.
template <class T> void run(const std::string& type, const std::string& wanted) {
  for (const std::size_t threads : {1, 2})
    for (const auto& cases : {model_and_tape_cases<T>(), operation_cases<T>()})
      for (const auto& [name, run_case] : cases) {
        context = type + ", " + std::to_string(threads) + (threads == 1 ? " thread, " : " threads, ") + name + ": ";
        if (context.find(wanted) == std::string::npos) continue;
        tg::set_num_threads(threads);
        tg::manual_seed(1);
        run_case();
      }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string wanted = argc > 1 ? argv[1] : "";
  run<float>("float", wanted);
  run<double>("double", wanted);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bits: %s%s\n", context.c_str(), error.what());
  return 1;
}
