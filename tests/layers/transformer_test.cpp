#include <tapegrad/testing.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "in_double.hpp"
#include "refused.hpp"
#include "special_values.hpp"

using EncoderBlock = tg::TransformerBlock<double>;
using Mask = tg::AttentionMask;

namespace {

// Options of a block like Llama's, with heads that share keys and values.
const tg::TransformerBlockOptions llama{.feed_forward_width = 6,
                                        .activation = tg::Activation::swiglu,
                                        .bias = false,
                                        .normalization = tg::Normalization::rms,
                                        .num_kv_heads = 2,
                                        .rotary_base = 100};

Tensor random_constant(const tg::Shape& shape) { return Tensor(tg::normal<double>(shape)); }

void check_spread(const Parameter& parameter, double expected) {
  double squares = 0;
  for (const double value : parameter.value()) squares += value * value;
  const double spread = std::sqrt(squares / static_cast<double>(parameter.size()));
  CHECK(std::abs(spread - expected) <= 0.1 * expected);
}

struct Initialized {
  struct Mine : tg::Linear<double> {
    using Linear::Linear;
  };
  tg::Embedding<double> tokens{50, 32, {.padding_idx = 3}};
  std::vector<EncoderBlock> blocks;
  Mine head{32, 50};
  Parameter own{Array(tg::Shape{8, 8}, 2.0)};
  TAPEGRAD_FIELDS(tokens, blocks, head, own)

  Initialized() {
    for (int i = 0; i < 8; ++i) blocks.push_back({32, 4, {.activation = tg::Activation::swiglu, .num_kv_heads = 2}});
  }
};

}  // namespace

// models_test.cpp compares a block's values and gradients with PyTorch's.
TEST_CASE("Gradients through the attention weights match their values") {
  const Tensor x = random_constant({2, 3, 4});
  auto one_head_of_keys = llama;
  one_head_of_keys.num_kv_heads = 1, one_head_of_keys.bias = true;
  for (EncoderBlock block : {EncoderBlock(4, 2), EncoderBlock(4, 2, llama), EncoderBlock(4, 2, one_head_of_keys)})
    CHECK_GRADIENTS(
        [&] {
          const auto [y, weights] = block.with_weights(x, Mask::causal());
          const Tensor alone = block.attention.attention_weights(y, y, Mask::valid_lens({3, 2}));
          return tg::mean(y * y) + tg::mean(weights * weights) + tg::mean(alone * alone);
        },
        block);
}

TEST_CASE("A block returns its attention's weights, with any placement of the norms") {
  const Tensor x = random_constant({2, 5, 8});
  for (const auto norm : {tg::NormPlacement::first, tg::NormPlacement::last, tg::NormPlacement::none}) {
    auto options = llama;
    options.norm = norm;
    for (const EncoderBlock& block : {EncoderBlock(8, 2, {.norm = norm}), EncoderBlock(8, 4, options)}) {
      const auto [y, weights] = block.with_weights(x, Mask::causal());
      check_close(y.value(), block(x, Mask::causal()).value());
      const Tensor seen = norm == tg::NormPlacement::first ? block.norm1(x) : x;
      check_close(weights.value(), block.attention.attention_weights(seen, seen, Mask::causal()).value());
    }
  }
}

TEST_CASE("A Llama block with a cache matches the block at once") {
  const EncoderBlock block(8, 4, llama);
  const Tensor x = random_constant({2, 5, 8});
  const Array whole = block(x, Mask::causal()).value();
  tg::KeyValueCache<double> cache;
  for (std::ptrdiff_t t = 0; t < 5; ++t)
    check_close(block(tg::narrow(x, 1, t, 1), cache).value(), tg::narrow(Tensor(whole), 1, t, 1).value());
}

TEST_CASE("A gate is drawn from the given generator") {
  tg::Generator one(7), same(7);
  const tg::FeedForward<double> first(3, 5, {.activation = tg::Activation::swiglu, .generator = &one});
  const tg::FeedForward<double> second(3, 5, {.activation = tg::Activation::swiglu, .generator = &same});
  CHECK(first.gate->weight.value() == second.gate->weight.value());
  CHECK(one == same);
}

TEST_CASE("RMSNorm divides by the root mean square, and can replace a LayerNorm") {
  const Tensor x(Array{{3, 4}});
  const tg::RMSNorm<double> norm(2), wide(2, {.eps = 12.5});
  check_close(norm(x).value(), x.value() / std::sqrt(12.5 + 1e-6));
  check_close(wide(x).value(), Array{{0.6, 0.8}});
  CHECK_FALSE(norm.bias.defined());
  tg::LayerNorm<double> biased(2, {.eps = 12.5, .center = false});
  biased.bias.set_value(Array{1, 2});
  check_close(biased(x).value(), Array{{1.6, 2.8}});

  EncoderBlock block(8, 2);
  block.norm1 = tg::RMSNorm<double>(8);
  const auto names = tg::named_parameters(block);
  CHECK(names.front().first == "norm1.weight");
  CHECK(names[1].first == "attention.q_proj.weight");
  const Tensor h = random_constant({1, 3, 8});
  check_close(block.norm1(h).value(), tg::rms_norm(h, Tensor(Array(tg::Shape{8}, 1.0))).value());

  CHECK(EncoderBlock(8, 2, {.normalization = tg::Normalization::rms, .norm_eps = 0.25}).norm1.eps == 0.25);
  CHECK(EncoderBlock(8, 2, {.norm_eps = 0.25}).norm2.eps == 0.25);
}

TEST_CASE("Training drops outputs of the attention with the given probability") {
  tg::manual_seed(1);
  EncoderBlock block(64, 4, {.dropout = 0.3, .norm = tg::NormPlacement::none});
  block.feed_forward.fc2.weight.set_value(Array(tg::Shape{64, 256}, 0.0));
  block.feed_forward.fc2.bias.set_value(Array(tg::Shape{64}, 0.0));
  const Tensor x = random_constant({4, 16, 64});
  const Array added = block(x).value() - x.value();  // from attention alone
  const auto zeros = static_cast<double>(std::count(added.begin(), added.end(), 0.0)) / double(added.size());
  CHECK(zeros > 0.25);
  CHECK(zeros < 0.35);
}

TEST_CASE("Training drops in both halves of a block, with any placement of the norms") {
  tg::manual_seed(3);
  const Tensor x = random_constant({2, 3, 8});
  for (const auto norm : {tg::NormPlacement::first, tg::NormPlacement::last, tg::NormPlacement::none})
    for (const bool attention_adds : {true, false}) {
      CAPTURE(int(norm));
      CAPTURE(attention_adds);
      EncoderBlock block(8, 2, {.dropout = 0.5, .norm = norm});
      auto& silent = attention_adds ? block.feed_forward.fc2 : block.attention.out_proj;
      tg::initialize_normal(silent, 0);
      const Array trained = block(x).value();
      tg::eval(block);
      CHECK(trained != block(x).value());
    }
}

TEST_CASE("A block refuses invalid sizes and probabilities before it draws random numbers") {
  const tg::Generator before = tg::default_generator();
  check_refused("TransformerBlock", "width", [] { EncoderBlock(0, 1); });
  for (const int width : {-5, -1})
    check_refused("TransformerBlock", "feed_forward_width from 1 to 2147483647, got " + std::to_string(width),
                  [&] { EncoderBlock(4, 1, {.feed_forward_width = static_cast<std::size_t>(width)}); });
  check_refused("MultiHeadAttention", "num_kv_heads 3", [] { EncoderBlock(8, 4, {.num_kv_heads = 3}); });
  check_refused("MultiHeadAttention", "num_kv_heads 8", [] { EncoderBlock(8, 4, {.num_kv_heads = 8}); });
  check_refused("MultiHeadAttention", "4 heads of width 3", [] { EncoderBlock(12, 4, {.rotary_base = 100}); });
  check_refused("MultiHeadAttention", "rotary_base above 0, got 0", [] { EncoderBlock(8, 4, {.rotary_base = 0}); });
  check_refused("MultiHeadAttention", "got inf", [] { EncoderBlock(8, 4, {.rotary_base = kInfinity}); });
  check_refused("RMSNorm", "got -1",
                [] { EncoderBlock(8, 4, {.normalization = tg::Normalization::rms, .norm_eps = -1}); });
  check_refused("RMSNorm", "normalized_shape", [] { tg::RMSNorm<>(0); });
  check_refused("Dropout", "1.5", [] { EncoderBlock(4, 2, {.dropout = 1.5}); });
  check_refused("Dropout", "1.5", [] { EncoderBlock(4, 2, {.attention_dropout = 1.5}); });
  CHECK(tg::default_generator() == before);
  check_refused("FeedForward", "Activation", [] {
    EncoderBlock(4, 2, {.activation = tg::Activation(7)})(random_constant({1, 2, 4}));
  });
  CHECK_THROWS_AS(EncoderBlock(4, 2)(random_constant({1, 2, 5})), std::invalid_argument);
  tg::default_generator() = before;
}

TEST_CASE("Initializations draw the weights of a whole model, except those of norms, padding and the model itself") {
  const auto check = [](auto initialize, double of_tokens, double of_layers, double of_residual_layers) {
    Initialized model, second;
    const Array of_padding = model.tokens(tg::IntArray{3}).value();
    tg::Generator generator(7), same(7);
    initialize(model, generator);
    check_spread(model.tokens.weight, of_tokens);
    CHECK(model.tokens(tg::IntArray{3}).value() == of_padding);
    check_spread(model.head.weight, of_layers);
    for (const EncoderBlock& block : model.blocks) {
      const auto& [attention, mlp] = std::tie(block.attention, block.feed_forward);
      for (const auto* layer : {&attention.q_proj, &attention.v_proj, &*mlp.gate, &mlp.fc1})
        check_spread(layer->weight, of_layers);
      for (const auto* layer : {&attention.out_proj, &mlp.fc2}) check_spread(layer->weight, of_residual_layers);
      for (const auto* layer : {&attention.out_proj, &*mlp.gate, &mlp.fc1, &mlp.fc2}) check_spread(layer->bias, 0);
      CHECK(block.norm1.weight.value() == Array(tg::Shape{32}, 1.0));
    }
    CHECK(model.own.value() == Array(tg::Shape{8, 8}, 2.0));
    initialize(second, same);
    CHECK(second.head.weight.value() == model.head.weight.value());
    CHECK(second.blocks[1].feed_forward.fc2.weight.value() == model.blocks[1].feed_forward.fc2.weight.value());
    CHECK(generator == same);
  };
  check([](auto& model, auto& generator) { tg::initialize_gpt2(model, generator); }, 0.02, 0.02, 0.02 / 4);
  check([](auto& model, auto& generator) { tg::initialize_normal(model, 0.5, generator); }, 0.5, 0.5, 0.5);
  // LeCun's preserves the variance of the input, and blocks start as the identity.
  check([](auto& model, auto& generator) { tg::initialize_lecun(model, generator); }, 0.02, 1 / std::sqrt(32.0), 0);

  Initialized::Mine alone(64, 64);
  tg::initialize_normal(alone, 0.25);
  check_spread(alone.weight, 0.25);
  check_refused("normal", "got -1", [&] { tg::initialize_normal(alone, -1); });
}

// ---- SkipInitialization -------------------------------------------------------------------------------------------

namespace {

bool draws() {
  const tg::Generator before = tg::default_generator();
  Initialized model;
  tg::initialize_gpt2(model);
  return tg::default_generator().state() != before.state();
}

}  // namespace

TEST_CASE("With SkipInitialization, layers draw no numbers, and have their shapes and norms") {
  tg::manual_seed(3);
  {
    const tg::SkipInitialization skip;
    CHECK(!draws());
    {
      const tg::SkipInitialization inner;
      CHECK(!draws());
    }
    CHECK(tg::SkipInitialization::is_active());  // the outer scope still does
    CHECK(!draws());
    bool other_thread_draws = false;
    std::thread([&] { other_thread_draws = draws(); }).join();
    CHECK(other_thread_draws);

    const Initialized model;
    CHECK(model.tokens.weight.shape() == tg::Shape{50, 32});
    CHECK(model.blocks[0].feed_forward.fc1.weight.shape() == tg::Shape{128, 32});
    CHECK(model.head.bias.shape() == tg::Shape{50});
    CHECK(model.blocks[0].norm1.weight.value() == Array(tg::Shape{32}, 1.0));
    CHECK(model.tokens.weight.value()(3, 1) == 0);  // padding row
  }
  CHECK(!tg::SkipInitialization::is_active());
  CHECK(draws());
}

TEST_CASE("With SkipInitialization, initialize_... leaves a model unchanged") {
  Initialized model;
  const std::vector<std::byte> before = tg::save_bytes(model);
  const tg::SkipInitialization skip;
  tg::initialize_gpt2(model);
  tg::initialize_lecun(model);
  tg::initialize_normal(model, 0);
  CHECK(tg::save_bytes(model) == before);
}
