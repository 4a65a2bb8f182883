#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "close.hpp"
#include "refused.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using EncoderBlock = tg::TransformerBlock<double>;
using Mask = tg::AttentionMask;
using Tensor = tg::Tensor<double>;

namespace {

// Options of a block like Llama's, with heads that share keys and values.
const tg::TransformerBlockOptions llama{.feed_forward_width = 6,
                                        .activation = tg::Activation::swiglu,
                                        .bias = false,
                                        .normalization = tg::Normalization::rms,
                                        .num_kv_heads = 2,
                                        .rotary_base = 100};

Tensor random_constant(const tg::Shape& shape) { return Tensor(tg::normal<double>(shape)); }

void check_spread(const tg::Parameter<double>& parameter, double expected) {
  double squares = 0;
  for (const double value : parameter.value()) squares += value * value;
  const double spread = std::sqrt(squares / static_cast<double>(parameter.size()));
  CHECK(std::abs(spread - expected) <= 0.1 * expected);
}

struct Gpt {
  tg::Embedding<double> tokens{50, 32, {.padding_idx = 3}};
  std::vector<EncoderBlock> blocks;
  tg::LayerNorm<double> norm{32};
  tg::Linear<double> head{32, 50};
  TAPEGRAD_FIELDS(tokens, blocks, norm, head)

  explicit Gpt(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) blocks.emplace_back(32, 4);
  }
};

}  // namespace

// models_test.cpp compares its values and gradients with PyTorch's.
TEST_CASE("A block's gradients match its values, also through the weights it returns") {
  const Tensor x = random_constant({2, 3, 4});
  EncoderBlock block(4, 2);
  SUBCASE("of GPT-2") {}
  SUBCASE("of Llama, two heads of keys") { block = EncoderBlock(4, 2, llama); }
  SUBCASE("of Llama, one head of keys, two of queries, biases") {
    auto options = llama;
    options.num_kv_heads = 1, options.bias = true;
    block = EncoderBlock(4, 2, options);
  }
  CHECK_GRADIENTS([&] { return tg::mean(pow(block(x, Mask::causal()), 2)); }, block);
  CHECK_GRADIENTS(
      [&] {
        const auto [y, weights] = block.with_weights(x, Mask::causal());
        return tg::mean(y * y) + tg::mean(weights * weights);
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

TEST_CASE("Scores of rotated queries and keys depend on their distance") {
  tg::manual_seed(4);
  const tg::MultiHeadAttention<double> layer(8, 2, {.rotary_base = 50});
  const Array one = tg::normal<double>({1, 1, 8});
  const Tensor equal = tg::repeat(Tensor(one), {1, 6, 1});
  const Array weights = layer.attention_weights(equal, equal).value();  // (1, 2, 6, 6)
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t + 1 < 6; ++t)
      for (std::size_t s = 0; s + 1 < 6; ++s)  // differences of scores in a row equal those one row below
        CHECK(std::log(weights(0, h, t, s) / weights(0, h, t, t)) ==
              doctest::Approx(std::log(weights(0, h, t + 1, s + 1) / weights(0, h, t + 1, t + 1))));
  CHECK(std::abs(weights(0, 0, 0, 0) - weights(0, 0, 0, 1)) > 1e-4);
}

TEST_CASE("A gate is multiplied by the first layer's output") {
  const tg::FeedForward<double> gated(3, 5, {.activation = tg::Activation::swiglu});
  const Tensor x = random_constant({2, 3}), gate = (*gated.gate)(x);
  check_close(gated(x).value(), gated.fc2(gate * tg::sigmoid(gate) * gated.fc1(x)).value());
  CHECK_FALSE(tg::FeedForward<double>(3, 5, {.activation = tg::Activation::silu}).gate);
  CHECK_FALSE(
      tg::FeedForward<double>(3, 5, {.activation = tg::Activation::swiglu, .bias = false}).gate->bias.defined());

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

  CHECK(EncoderBlock(8, 2, {.normalization = tg::Normalization::rms}).norm2.eps == 1e-6);
  CHECK(EncoderBlock(8, 2).norm1.eps == 1e-5);
  CHECK(EncoderBlock(8, 2, {.normalization = tg::Normalization::rms, .norm_eps = 0.25}).norm1.eps == 0.25);
  CHECK(EncoderBlock(8, 2, {.norm_eps = 0.25}).norm2.eps == 0.25);
}

TEST_CASE("A block has the given widths, by default a hidden one of four times its own") {
  CHECK(EncoderBlock(8, 2).feed_forward.fc1.weight.shape() == tg::Shape{32, 8});
  CHECK(EncoderBlock(8, 2, {.feed_forward_width = 5}).feed_forward.fc2.weight.shape() == tg::Shape{8, 5});
  const EncoderBlock llamas(8, 4, llama);
  CHECK(llamas.attention.k_proj.weight.shape() == tg::Shape{4, 8});
  CHECK(llamas.attention.v_proj.weight.shape() == tg::Shape{4, 8});
}

TEST_CASE("Training drops outputs of the attention and the feed-forward with the given probabilities") {
  tg::manual_seed(1);
  EncoderBlock block(64, 4, {.dropout = 0.3, .norm = tg::NormPlacement::none});
  block.feed_forward.fc2.weight.set_value(Array(tg::Shape{64, 256}, 0.0));
  block.feed_forward.fc2.bias.set_value(Array(tg::Shape{64}, 0.0));
  const Tensor x = random_constant({4, 16, 64});
  const Array added = block(x).value() - x.value();  // from attention alone
  const auto zeros = static_cast<double>(std::count(added.begin(), added.end(), 0.0)) / double(added.size());
  CHECK(zeros > 0.25);
  CHECK(zeros < 0.35);

  block.feed_forward.fc2.bias.set_value(Array(tg::Shape{64}, 1.0));
  const Array both = block(x).value() - x.value();
  CHECK(static_cast<double>(std::count(both.begin(), both.end(), 0.0)) / double(both.size()) < 0.12);  // 0.3 squared
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
  check_refused("MultiHeadAttention", "num_heads", [] { EncoderBlock(6, 4); });
  check_refused("MultiHeadAttention", "num_kv_heads 3", [] { EncoderBlock(8, 4, {.num_kv_heads = 3}); });
  check_refused("MultiHeadAttention", "num_kv_heads 8", [] { EncoderBlock(8, 4, {.num_kv_heads = 8}); });
  check_refused("MultiHeadAttention", "4 heads of width 3", [] { EncoderBlock(12, 4, {.rotary_base = 100}); });
  check_refused("MultiHeadAttention", "rotary_base above 0, got 0", [] { EncoderBlock(8, 4, {.rotary_base = 0}); });
  check_refused("MultiHeadAttention", "got inf",
                [] { EncoderBlock(8, 4, {.rotary_base = std::numeric_limits<double>::infinity()}); });
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

TEST_CASE("GPT-2's initial weights are normal, and smaller in residual layers") {
  tg::manual_seed(2);
  Gpt gpt(8);
  const Array of_padding = tg::Tensor<double>(gpt.tokens(tg::IntArray{3})).value();
  tg::initialize_gpt2(gpt);
  check_spread(gpt.tokens.weight, 0.02);
  CHECK(gpt.tokens(tg::IntArray{3}).value() == of_padding);
  check_spread(gpt.head.weight, 0.02);
  check_spread(gpt.head.bias, 0);
  for (const EncoderBlock& block : gpt.blocks) {
    check_spread(block.attention.k_proj.weight, 0.02);
    check_spread(block.attention.out_proj.weight, 0.02 / 4);
    check_spread(block.feed_forward.fc1.weight, 0.02);
    check_spread(block.feed_forward.fc2.weight, 0.02 / 4);
    check_spread(block.feed_forward.fc1.bias, 0);
    CHECK(block.norm1.weight.value() == Array(tg::Shape{32}, 1.0));
  }

  struct Mine : tg::Linear<double> {
    using Linear::Linear;
  } mine(64, 64);
  check_spread(mine.weight, 1 / std::sqrt(3.0 * 64));
  tg::initialize_gpt2(mine);
  check_spread(mine.weight, 0.02);

  EncoderBlock gated(32, 4, {.activation = tg::Activation::swiglu, .num_kv_heads = 2});
  tg::initialize_gpt2(gated);
  check_spread(gated.feed_forward.gate->weight, 0.02);
  check_spread(gated.feed_forward.gate->bias, 0);
  check_spread(gated.attention.v_proj.weight, 0.02);

  Gpt first(2), second(2);
  tg::Generator one(7), same(7);
  tg::initialize_gpt2(first, one);
  tg::initialize_gpt2(second, same);
  CHECK(first.blocks[1].feed_forward.fc2.weight.value() == second.blocks[1].feed_forward.fc2.weight.value());
  CHECK(one == same);
}

TEST_CASE("initialize_normal draws the weights of a whole model, except those of norms and of the model itself") {
  struct Mine : tg::Linear<double> {
    using Linear::Linear;
  };
  struct Model {
    Gpt gpt{2};
    Mine mine{64, 64};
    tg::Parameter<double> own{Array(tg::Shape{8, 8}, 2.0)};
    TAPEGRAD_FIELDS(gpt, mine, own)
  } model;
  const Array of_padding = tg::Tensor<double>(model.gpt.tokens(tg::IntArray{3})).value();
  tg::Generator generator(7), same(7);
  tg::initialize_normal(model, 0.5, generator);
  check_spread(model.gpt.tokens.weight, 0.5);
  CHECK(model.gpt.tokens(tg::IntArray{3}).value() == of_padding);
  for (const EncoderBlock& block : model.gpt.blocks) {
    check_spread(block.attention.out_proj.weight, 0.5);
    check_spread(block.feed_forward.fc2.weight, 0.5);
    check_spread(block.feed_forward.fc2.bias, 0);
    CHECK(block.norm1.weight.value() == Array(tg::Shape{32}, 1.0));
  }
  check_spread(model.mine.weight, 0.5);
  check_spread(model.mine.bias, 0);
  CHECK(model.own.value() == Array(tg::Shape{8, 8}, 2.0));
  tg::initialize_normal(model.mine, 0.25);
  check_spread(model.mine.weight, 0.25);

  Model second;
  tg::initialize_normal(second, 0.5, same);
  CHECK(second.gpt.head.weight.value() == model.gpt.head.weight.value());
  CHECK(generator == same);
  check_refused("normal", "got -1", [&] { tg::initialize_normal(second, -1); });
  const tg::SkipInitialization skip;
  tg::initialize_normal(second, 0);
  CHECK(second.gpt.head.weight.value() == model.gpt.head.weight.value());
}

TEST_CASE("LeCun's initial weights preserve the variance of the input, and blocks start as the identity") {
  tg::manual_seed(2);
  Gpt gpt(8);
  tg::initialize_lecun(gpt);
  check_spread(gpt.tokens.weight, 0.02);
  check_spread(gpt.head.weight, 1 / std::sqrt(32.0));
  for (const EncoderBlock& block : gpt.blocks) {
    check_spread(block.attention.q_proj.weight, 1 / std::sqrt(32.0));
    check_spread(block.feed_forward.fc1.weight, 1 / std::sqrt(32.0));
    const tg::Tensor<double> x(tg::normal<double>({1, 4, 32}));
    CHECK(block(x).value() == x.value());
  }
  EncoderBlock gated(32, 4, {.feed_forward_width = 100, .activation = tg::Activation::swiglu});
  tg::initialize_lecun(gated);
  check_spread(gated.feed_forward.gate->weight, 1 / std::sqrt(32.0));
}
