/// Given options take effect, and only where given; errors report the given values.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "in_double.hpp"

namespace {

bool all_zero(const Array& x) { return x == Array(x.shape(), 0.0); }

std::string printed(const tg::Tape& tape) {
  std::ostringstream out;
  tape.print(out);
  return out.str();
}

}  // namespace

// ---- layers -------------------------------------------------------------------------------------------------------

TEST_CASE("LayerNorm uses its eps, and starts with weights of 1 and biases of 0, if any") {
  const tg::LayerNorm<double> wide(2, {.eps = 3.0}), plain(2, {.bias = false});
  const Tensor x(Array{{1, 3}});  // mean 2, variance 1
  check_close(wide(x).value(), Array{{-0.5, 0.5}});
  check_close(plain(x).value(), Array{{-1, 1}} / std::sqrt(1 + 1e-5));
  CHECK(plain.weight.value() == Array{1, 1});
  CHECK(all_zero(wide.bias.value()));
  CHECK_FALSE(plain.bias.defined());
}

TEST_CASE("bias = false omits the biases of all parts of a layer") {
  tg::MultiHeadAttention<double> layer(4, 2, {.query_dim = 3, .key_dim = 5, .value_dim = 6, .bias = false});
  CHECK(tg::count_parameters(layer) == 4 * (3 + 5 + 6 + 4));
  for (const auto& [name, parameter] : tg::named_parameters(layer)) CHECK(name.ends_with(".weight"));
  CHECK_FALSE(tg::Linear<double>(2, 3, {.bias = false}).bias.defined());
  const Tensor q(Array({1, 2, 3}, 1.0)), k(Array({1, 7, 5}, 1.0)), v(Array({1, 7, 6}, 1.0));
  CHECK(layer(q, k, v).shape() == tg::Shape{1, 2, 4});
}

TEST_CASE("Linear's weights are within their bounds, and its bias is added, with more outputs or more inputs") {
  for (const auto& [in, out] : {std::pair<std::size_t, std::size_t>{2, 50}, {50, 2}}) {
    tg::manual_seed(30);
    tg::Linear<double> layer(in, out);
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    double lowest = 0, highest = 0;
    for (const double w : layer.weight.value()) lowest = std::min(lowest, w), highest = std::max(highest, w);
    CHECK(lowest >= -bound);
    CHECK(lowest < -0.9 * bound);
    CHECK(highest > 0.9 * bound);
    CHECK(highest < bound);
    CHECK(layer(Tensor(Array({1, in}, 0.0))).value() == Array(tg::reshape(layer.bias, {1, out}).value()));
  }
}

TEST_CASE("An Embedding's padding is the given row, initially, in the output and in the gradient") {
  tg::manual_seed(31);
  tg::Embedding<double> layer(5, 3, {.padding_idx = 2});
  for (std::ptrdiff_t row = 0; row < 5; ++row) CHECK(all_zero(tg::select(layer.weight, 0, row).value()) == (row == 2));
  tg::Tape tape;
  tg::sum(layer({0, 2, 2, 4, 2, 1})).backward();
  for (std::ptrdiff_t row = 0; row < 5; ++row)
    CHECK(all_zero(tg::select(Tensor(layer.weight.grad()), 0, row).value()) == (row == 2 || row == 3));
  CHECK_THROWS_AS(tg::Embedding<double>(5, 3, {.padding_idx = 5}), std::out_of_range);
  CHECK_THROWS_AS(tg::Embedding<double>(5, 3, {.padding_idx = -1}), std::out_of_range);
}

TEST_CASE("Self-attention applies its mask, and scales the scores by the width of one head") {
  tg::manual_seed(32);
  tg::MultiHeadAttention<double> layer(8, 2);
  const Tensor x(tg::normal<double>({1, 4, 8}));
  const auto mask = tg::AttentionMask::causal();
  check_close(layer(x, mask).value(), layer(x, x, x, mask).value());
  check_close(layer(x, mask).value(), layer.with_weights(x, x, x, mask).first.value());
  CHECK(layer(x, mask).value() != layer(x).value());
  const Array weights = layer.attention_weights(x, x, mask).value();
  for (std::size_t h = 0; h < 2; ++h) CHECK(weights(0, h, 0, 0) == 1);
}

TEST_CASE("A dropout of 1 is refused everywhere, and one slightly below it is accepted") {
  const Tensor x(Array({1, 2, 4}, 1.0));
  for (const double p : {1.0, -0.1, std::nan("")}) {
    CHECK_THROWS_AS(tg::dropout(x, p), std::invalid_argument);
    CHECK_THROWS_AS(tg::scaled_dot_product_attention(x, x, x, {}, {.dropout = p}), std::invalid_argument);
    CHECK_THROWS_AS(tg::multi_head_attention(x, x, x, 2, {}, {.dropout = p}), std::invalid_argument);
    CHECK_THROWS_AS(tg::Dropout{p}, std::invalid_argument);
  }
  CHECK_NOTHROW(tg::dropout(x, 0.999));
}

// ---- the optimizer ------------------------------------------------------------------------------------------------

TEST_CASE("SGD skips a parameter without a gradient, and clears the gradients of all") {
  Parameter first(Array{1}), second(Array{1}), third(Array{1});
  tg::SGD<double> optimizer({first, second, third}, {.lr = 0.5});
  second.set_grad(Array{1});
  third.set_grad(Array{2});
  optimizer.step();
  CHECK(first.value()(0) == 1);
  CHECK(second.value()(0) == 0.5);
  CHECK(third.value()(0) == 0);
  optimizer.zero_grad();
  for (const Parameter* p : {&first, &second, &third}) CHECK_FALSE(p->has_grad());
  optimizer.set_lr(2);
  CHECK(optimizer.lr() == 2);
  third.set_grad(Array{2});
  optimizer.step();
  CHECK(third.value()(0) == -4);
  CHECK_THROWS_AS(optimizer.set_lr(-1), std::invalid_argument);
  CHECK(optimizer.lr() == 2);
}

// ---- parameters and reports ---------------------------------------------------------------------------------------

TEST_CASE("A parameter assigned an undefined one is undefined, without value and gradient") {
  Parameter p(Array{1, 2});
  p.set_grad(Array{3, 4});
  const Parameter none;
  p = none;
  CHECK_FALSE(p.defined());
  CHECK_FALSE(p.has_grad());
  CHECK_FALSE(p.requires_grad());
}

TEST_CASE("Errors contain the names of tensors and the axis in which they differ") {
  Parameter p(Array{{1, 2}, {3, 4}});
  p.set_name("head.weight");
  const Tensor x(Array{{1, 2, 3, 4}});
  CHECK_THROWS_WITH_AS(p + x,
                       "[add] expected shapes that broadcast together, got head.weight (2, 2) and (1, 4): they "
                       "differ in axis -1",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(x * p, Contains("got (1, 4) and head.weight (2, 2): they differ in axis -1"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(p - Tensor(Array({4, 2}, 1.0)), Contains("they differ in axis -2"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::linear(x, p), Contains("head.weight (2, 2)"), std::invalid_argument);
}

TEST_CASE("A profile uses microseconds and milliseconds, and bytes and kilobytes") {
  const auto saving = [](std::size_t count) {
    const Parameter p(Array(tg::Shape{count}, 1.0));
    tg::Tape tape({.profile = true});
    const Tensor y = tg::exp(p);  // saves its output
    return printed(tape);
  };
  CHECK(saving(15).find(" 120 B ") != std::string::npos);
  CHECK(saving(124).find(" 992 B ") != std::string::npos);
  CHECK(saving(150).find(" 1.2 KB ") != std::string::npos);
  CHECK(saving(1500).find(" 12 KB ") != std::string::npos);

  const Parameter p(Array{1});
  tg::Tape tape({.profile = true});
  const Tensor y = tg::record("slow", Array(p.value()), {p}, [](const Array& dy, auto& dx) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    dx[0] += dy;
  });
  y.backward();
  CHECK(printed(tape).find(" ms ") != std::string::npos);
}
