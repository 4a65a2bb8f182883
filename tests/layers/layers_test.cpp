/// Linear, Embedding, LayerNorm and MultiHeadAttention. models_test.cpp compares their results with PyTorch's.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "in_double.hpp"
#include "special_values.hpp"

namespace {

Tensor constant(const tg::Shape& shape) { return Tensor(tg::normal<double>(shape)); }

// The mean and the variance.
std::pair<double, double> moments(const tg::Array<float>& x) {
  const double n = static_cast<double>(x.size()), mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  return {mean, squares / n};
}

}  // namespace

TEST_CASE("Linear starts uniformly distributed within plus and minus one over the root of its inputs") {
  tg::manual_seed(3);
  const tg::Linear<float> layer(100, 400);
  for (const auto& values : {layer.weight.value(), layer.bias.value()}) {
    const auto [smallest, largest] = std::ranges::minmax(values);
    CHECK((smallest >= -0.1F && smallest < -0.095F));
    CHECK((largest <= 0.1F && largest > 0.095F));
    const auto [mean, variance] = moments(values);
    const double n = static_cast<double>(values.size());  // four standard errors of mean and variance
    CHECK(std::abs(mean) < 4 * 0.1 / std::sqrt(3 * n));
    CHECK(std::abs(variance - 0.01 / 3) < 4 * 0.01 * std::sqrt(4 / (45 * n)));
  }
}

// Expects an error of type Error with exactly this message.
template <class Error = std::invalid_argument, class Call> void check_error(const std::string& message, Call call) {
  CAPTURE(message);
  CHECK_THROWS_WITH_AS(call(), message.c_str(), Error);
}

TEST_CASE("Layers refuse sizes and options out of range before they draw random numbers") {
  using Attention = tg::MultiHeadAttention<>;
  const tg::Generator untouched = tg::default_generator();
  const std::string sizes = " from 1 to 2147483647, got ";
  check_error("[Linear] expected in_features" + sizes + "0", [] { tg::Linear<>(0, 3); });
  check_error("[Linear] expected out_features" + sizes + "-2", [] { tg::Linear<>(3, std::size_t(-2)); });
  check_error("[Embedding] expected num_embeddings" + sizes + "0", [] { tg::Embedding<>(0, 3); });
  check_error("[Embedding] expected embedding_dim" + sizes + "0", [] { tg::Embedding<>(3, 0); });
  for (const int padding : {4, -1})
    check_error<std::out_of_range>("[Embedding] expected a padding_idx from 0 to 3, got " + std::to_string(padding),
                                   [&] { tg::Embedding<>(4, 2, {.padding_idx = padding}); });
  check_error("[LayerNorm] expected normalized_shape" + sizes + "-1", [] { tg::LayerNorm<>({4, -1}); });
  check_error("[LayerNorm] expected a normalized_shape of at least one axis, got ()",
              [] { tg::LayerNorm<>(tg::Extents{}); });
  check_error("[LayerNorm] expected an eps of 0 or more, got -1", [] { tg::LayerNorm<>(3, {.eps = -1}); });
  CHECK_THROWS_AS(tg::LayerNorm<>(3, {.eps = kNaN}), std::invalid_argument);
  check_error("[MultiHeadAttention] expected dim" + sizes + "0", [] { Attention(0, 1); });
  check_error("[MultiHeadAttention] expected num_heads" + sizes + "0", [] { Attention(8, 0); });
  for (const auto& [name, size] : {std::pair("query_dim", &tg::MultiHeadAttentionOptions::query_dim),
                                   {"key_dim", &tg::MultiHeadAttentionOptions::key_dim},
                                   {"value_dim", &tg::MultiHeadAttentionOptions::value_dim}}) {
    tg::MultiHeadAttentionOptions options;
    options.*size = std::size_t(-1);
    check_error("[MultiHeadAttention] expected " + (name + sizes) + "-1", [&options] { Attention(8, 2, options); });
  }
  check_error("[MultiHeadAttention] expected dim divisible by num_heads, got dim 100 and num_heads 3",
              [] { Attention(100, 3); });
  check_error("[Dropout] expected a probability p in [0, 1), got 1", [] { tg::Dropout(1.0); });
  for (const double p : {1.0, -0.1, kNaN}) {
    CHECK_THROWS_AS(tg::Dropout{p}, std::invalid_argument);
    CHECK_THROWS_AS(Attention(4, 2, {.dropout = p}), std::invalid_argument);
  }
  CHECK(tg::Dropout(0.0).p == 0);
  CHECK(tg::default_generator() == untouched);
}

TEST_CASE("Embedding starts with a normal distribution, and zeros for padding") {
  tg::manual_seed(8);
  const tg::Embedding<float> layer(400, 100);
  const auto& values = layer.weight.value();
  const auto [mean, variance] = moments(values);
  CHECK(std::abs(mean) < 4 / std::sqrt(40000.0));
  CHECK(std::abs(variance - 1) < 4 * std::sqrt(2 / 40000.0));
  const auto within = [&](double bound) {
    return double(std::count_if(values.begin(), values.end(), [=](float x) { return std::abs(x) < bound; })) / 40000;
  };
  CHECK(within(1) == doctest::Approx(0.6827).epsilon(0.02));
  CHECK(within(2) == doctest::Approx(0.9545).epsilon(0.01));
  const tg::Embedding<double> padded(4, 3, {.padding_idx = 2});
  CHECK(tg::select(padded.weight, 0, 2).value() == Array{0.0, 0.0, 0.0});
}

TEST_CASE("LayerNorm over several axes uses their common mean") {
  const tg::LayerNorm<double> layer({2, 2}, {.eps = 0});
  const Tensor x(Array{{{1., 2.}, {3., 6.}}});  // mean 3, variance 3.5
  const double s = std::sqrt(3.5);
  check_close(layer(x).value(), Array{{{-2 / s, -1 / s}, {0., 3 / s}}});
}

TEST_CASE("Attention's error for incompatible inputs names the expected shapes") {
  tg::MultiHeadAttention<double> layer(6, 2, {.query_dim = 3, .key_dim = 4, .value_dim = 5});
  const Tensor q = constant({2, 3, 3}), k = constant({2, 7, 4}), v = constant({2, 7, 5});
  CHECK(tg::parameters(layer).size() == 8);  // traversal names the parameters
  check_error("[linear] expected an input of shape (..., 5) for v_proj.weight (6, 5), got (2, 7, 4): axis -1 is 4",
              [&] { layer(q, k, k); });
  check_error("[linear] expected an input of shape (..., 3) for q_proj.weight (6, 3), got (2, 7, 4): axis -1 is 4",
              [&] { layer.attention_weights(k, k); });
  const auto misfit = Contains("[MultiHeadAttention] expected queries");
  const Tensor other_batch = constant({1, 7, 4});
  CHECK_THROWS_WITH_AS(layer(q, k, constant({2, 6, 5})), misfit, std::invalid_argument);  // fewer values than keys
  CHECK_THROWS_WITH_AS(layer.with_weights(q, k, constant({2, 6, 5})), misfit, std::invalid_argument);
  CHECK_THROWS_WITH_AS(layer(q, other_batch, constant({1, 7, 5})), misfit, std::invalid_argument);
  CHECK_THROWS_WITH_AS(layer(q, other_batch, v), misfit, std::invalid_argument);
  CHECK_THROWS_WITH_AS(layer(q, k, constant({1, 7, 5})), misfit, std::invalid_argument);
  CHECK_THROWS_WITH_AS(layer(constant({3, 3}), k, v), misfit, std::invalid_argument);
  CHECK_THROWS_WITH_AS(layer.attention_weights(q, other_batch), misfit, std::invalid_argument);
  CHECK_THROWS_AS(layer(q, k, v, tg::AttentionMask::valid_lens(tg::IntArray{1, 2, 3})), std::invalid_argument);
  CHECK_NOTHROW(layer(q, k, v));
}

TEST_CASE("Attention drops weights with the probability it was given, in training only") {
  tg::manual_seed(19);
  tg::MultiHeadAttention<double> layer(4, 2, {.dropout = 0.25});
  const tg::Tensor<double> x(tg::normal<double>({2, 5, 4}));
  const auto expected = [&](double dropout) {
    tg::manual_seed(20);
    return layer.out_proj(
        tg::multi_head_attention(layer.q_proj(x), layer.k_proj(x), layer.v_proj(x), 2, {}, {.dropout = dropout}));
  };
  const tg::Tensor<double> dropped = expected(0.25), whole = expected(0);
  tg::manual_seed(20);
  CHECK(layer(x).value() == dropped.value());
  CHECK(dropped.value() != whole.value());
  tg::eval(layer);
  CHECK(layer(x).value() == whole.value());
}
