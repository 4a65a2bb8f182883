#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "close.hpp"
#include "special_values.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Tensor = tg::Tensor<double>;

namespace {

Tensor constant(const tg::Shape& shape) { return Tensor(tg::normal<double>(shape)); }

// Checks the gradients of f with respect to the model's parameters and the inputs.
template <class M, class F> void check_gradients(M& model, tg::NamedParameters<double> inputs, F f) {
  auto named = tg::named_parameters(model);
  named.insert(named.end(), inputs.begin(), inputs.end());
  const auto result = tg::testing::gradcheck(f, named);
  CHECK_MESSAGE(result.ok, result.report);
}

struct Moments {
  double mean, variance, smallest, largest;
};

template <class T> Moments moments(const tg::Array<T>& x) {
  const double n = static_cast<double>(x.size());
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  return {mean, squares / n, *std::min_element(x.begin(), x.end()), *std::max_element(x.begin(), x.end())};
}

// y = x W^T + b, by definition. x: (B, T, in)
Array project(const Array& x, const tg::Linear<double>& layer) {
  const Array& w = layer.weight.value();
  const std::size_t batch = x.shape(0), time = x.shape(1), out = w.shape(0), in = w.shape(1);
  Array y(tg::Shape{batch, time, out});
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t t = 0; t < time; ++t)
      for (std::size_t o = 0; o < out; ++o) {
        y(b, t, o) = layer.bias.defined() ? layer.bias.value()(o) : 0.0;
        for (std::size_t i = 0; i < in; ++i) y(b, t, o) += x(b, t, i) * w(o, i);
      }
  return y;
}

struct Attended {
  Array weights, out;  // (B, H, T, S), (B, T, dim)
};

// Attention by definition, one query and one head at a time. allowed(b, t, s): true if the query may attend to the key.
template <class Allowed>
Attended attend(const tg::MultiHeadAttention<double>& layer, const Array& queries, const Array& keys,
                const Array& values, Allowed allowed) {
  const Array q = project(queries, layer.q_proj), k = project(keys, layer.k_proj), v = project(values, layer.v_proj);
  const std::size_t batch = q.shape(0), T = q.shape(1), S = k.shape(1), dim = q.shape(2), heads = layer.num_heads;
  const std::size_t width = dim / heads;
  Array weights(tg::Shape{batch, heads, T, S}, 0.0), joined(tg::Shape{batch, T, dim}, 0.0);
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t t = 0; t < T; ++t) {
        double total = 0;
        for (std::size_t s = 0; s < S; ++s) {
          double score = 0;
          for (std::size_t d = h * width; d < (h + 1) * width; ++d) score += q(b, t, d) * k(b, s, d);
          if (allowed(b, t, s)) weights(b, h, t, s) = std::exp(score / std::sqrt(double(width)));
          total += weights(b, h, t, s);
        }
        for (std::size_t s = 0; s < S && total > 0; ++s) {
          weights(b, h, t, s) /= total;
          for (std::size_t d = h * width; d < (h + 1) * width; ++d) joined(b, t, d) += weights(b, h, t, s) * v(b, s, d);
        }
      }
  return {weights, project(joined, layer.out_proj)};
}

}  // namespace

TEST_CASE("Linear multiplies by its transposed weight and adds its bias") {
  tg::manual_seed(1);
  tg::Linear<double> layer(3, 4), unbiased(3, 4, {.bias = false});
  const Tensor x = constant({2, 5, 3});
  check_close(layer(x).value(), project(x.value(), layer));
  check_close(unbiased(x).value(), project(x.value(), unbiased));
  CHECK(!unbiased.bias.defined());
  CHECK(layer(constant({3})).shape() == tg::Shape{4});
}

TEST_CASE("Linear starts uniformly distributed within plus and minus one over the root of its inputs") {
  tg::manual_seed(3);
  const tg::Linear<float> layer(100, 400);
  for (const auto& values : {layer.weight.value(), layer.bias.value()}) {
    const Moments m = moments(values);
    CHECK(m.smallest >= -0.1);
    CHECK(m.largest <= 0.1);
    CHECK(m.smallest < -0.095);
    CHECK(m.largest > 0.095);
    const double n = static_cast<double>(values.size());  // four standard errors of mean and variance
    CHECK(std::abs(m.mean) < 4 * 0.1 / std::sqrt(3 * n));
    CHECK(std::abs(m.variance - 0.01 / 3) < 4 * 0.01 * std::sqrt(4 / (45 * n)));
  }
}

TEST_CASE("Layers' gradients agree with finite differences") {
  tg::manual_seed(2);
  tg::Parameter<double> x(tg::normal<double>({2, 3, 4})), q(tg::normal<double>({2, 3, 3})),
      k(tg::normal<double>({2, 3, 2})), v(tg::normal<double>({2, 3, 5}));
  tg::Linear<double> linear(4, 2);
  check_gradients(linear, {{"x", x}}, [&] { return linear(x); });
  tg::Embedding<double> embedding(4, 3);  // an id's occurrences accumulate
  check_gradients(embedding, {}, [&] { return embedding(tg::IntArray{{1, 2}, {1, 1}}); });
  tg::LayerNorm<double> norm(4);
  norm.weight.set_value(tg::normal<double>({4}));
  check_gradients(norm, {{"x", x}}, [&] { return norm(x); });
  tg::MultiHeadAttention<double> cross(4, 2, {.query_dim = 3, .key_dim = 2, .value_dim = 5}), self(4, 2);
  const auto mask = tg::AttentionMask::causal() & tg::AttentionMask::valid_lens(tg::IntArray{3, 2});
  check_gradients(cross, {{"q", q}, {"k", k}, {"v", v}}, [&] { return cross(q, k, v, mask); });
  check_gradients(self, {{"x", x}}, [&] { return self(x); });
  check_gradients(self, {{"x", x}}, [&] { return self.attention_weights(x, x, tg::AttentionMask::causal()); });
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
  check_error("[MultiHeadAttention] expected value_dim" + sizes + "-1",
              [] { Attention(8, 2, {.value_dim = std::size_t(-1)}); });
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

TEST_CASE("Layers refuse inputs that do not fit, naming the shapes or the id") {
  const tg::Linear<double> linear(3, 4);
  for (const char* shape : {"(4, 3)", "(2, 5)"})
    CHECK_THROWS_WITH_AS(linear(constant({2, 5})), doctest::Contains(shape), std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::LayerNorm<double>(3)(constant({2, 4})), doctest::Contains("(2, 4)"), std::invalid_argument);
  const tg::Embedding<> embedding(4, 2);
  for (const int id : {4, -1})
    CHECK_THROWS_WITH_AS(embedding(tg::IntArray{1, id}), doctest::Contains(std::to_string(id).c_str()),
                         std::out_of_range);
}

TEST_CASE("Embedding looks up the rows of its weight") {
  tg::manual_seed(5);
  const tg::Embedding<double> layer(4, 2);
  const Array& w = layer.weight.value();
  check_close(layer(tg::IntArray{{3, 0}, {1, 3}}).value(),
              Array{{{w(3, 0), w(3, 1)}, {w(0, 0), w(0, 1)}}, {{w(1, 0), w(1, 1)}, {w(3, 0), w(3, 1)}}});
}

TEST_CASE("Embedding's padding starts as zeros and gets no gradient") {
  tg::manual_seed(7);
  tg::Embedding<double> layer(4, 3, {.padding_idx = 2});
  check_close(tg::select(layer.weight, 0, 2).value(), Array{0.0, 0.0, 0.0});
  tg::Tape tape;
  tg::sum(layer(tg::IntArray{2, 1, 2})).backward();
  check_close(layer.weight.grad(), Array{{0., 0., 0.}, {1., 1., 1.}, {0., 0., 0.}, {0., 0., 0.}});
}

TEST_CASE("Embedding starts with a normal distribution") {
  tg::manual_seed(8);
  const tg::Embedding<float> layer(400, 100);
  const auto& values = layer.weight.value();
  const Moments m = moments(values);
  CHECK(std::abs(m.mean) < 4 / std::sqrt(40000.0));
  CHECK(std::abs(m.variance - 1) < 4 * std::sqrt(2 / 40000.0));
  const auto within = [&](double bound) {
    return double(std::count_if(values.begin(), values.end(), [=](float x) { return std::abs(x) < bound; })) / 40000;
  };
  CHECK(within(1) == doctest::Approx(0.6827).epsilon(0.02));
  CHECK(within(2) == doctest::Approx(0.9545).epsilon(0.01));
}

TEST_CASE_TEMPLATE("Dropout in training zeroes a share p and scales the rest", T, float, double) {
  tg::manual_seed(9);
  tg::Dropout dropout(0.25);
  const tg::Tensor<T> x(tg::Array<T>(tg::Shape{100, 400}, T(3)));
  const tg::Array<T> y = dropout(x).value();
  const auto zeros = std::count(y.begin(), y.end(), T(0));
  CHECK(std::abs(double(zeros) / 40000 - 0.25) < 4 * std::sqrt(0.25 * 0.75 / 40000));
  CHECK(std::count(y.begin(), y.end(), T(4)) == 40000 - zeros);
  tg::eval(dropout);
  CHECK(dropout(x).value() == x.value());
}

TEST_CASE("LayerNorm makes rows of mean 0 and variance 1, then scales and shifts them") {
  tg::manual_seed(11);
  tg::LayerNorm<double> layer(3, {.eps = 0.5}), unbiased(3, {.bias = false});
  CHECK(layer.weight.value() == Array{1.0, 1.0, 1.0});
  CHECK(layer.bias.value() == Array{0.0, 0.0, 0.0});
  layer.weight.set_value(Array{1.0, 2.0, 3.0});
  layer.bias.set_value(Array{-1.0, 0.0, 1.0});
  const Array x = tg::normal<double>({2, 3});
  Array expected = x;
  for (std::size_t r = 0; r < 2; ++r) {
    const double mean = (x(r, 0) + x(r, 1) + x(r, 2)) / 3;
    double variance = 0;
    for (std::size_t i = 0; i < 3; ++i) variance += (x(r, i) - mean) * (x(r, i) - mean) / 3;
    for (std::size_t i = 0; i < 3; ++i)
      expected(r, i) = (x(r, i) - mean) / std::sqrt(variance + 0.5) * double(i + 1) + (double(i) - 1);
  }
  check_close(layer(Tensor(x)).value(), expected);
  CHECK(!unbiased.bias.defined());
  CHECK(unbiased.eps == 1e-5);
  check_close(tg::mean(unbiased(Tensor(x)), {1}).value(), Array{0.0, 0.0});
}

TEST_CASE("LayerNorm over several axes uses their common mean") {
  const tg::LayerNorm<double> layer({2, 2}, {.eps = 0});
  const Tensor x(Array{{{1., 2.}, {3., 6.}}});  // mean 3, variance 3.5
  const double s = std::sqrt(3.5);
  check_close(layer(x).value(), Array{{{-2 / s, -1 / s}, {0., 3 / s}}});
}

TEST_CASE("Self-attention matches its definition for one head and for several") {
  tg::manual_seed(13);
  const Tensor x = constant({2, 5, 6});
  const auto everything = [](auto, auto, auto) { return true; };
  for (const std::size_t heads : {1, 2, 3, 6}) {
    CAPTURE(heads);
    const tg::MultiHeadAttention<double> layer(6, heads);
    const Attended expected = attend(layer, x.value(), x.value(), x.value(), everything);
    check_close(layer(x).value(), expected.out);
    check_close(layer.attention_weights(x, x).value(), expected.weights);
  }
}

TEST_CASE("Cross-attention accepts queries, keys and values of different widths") {
  tg::manual_seed(14);
  tg::MultiHeadAttention<double> layer(6, 2, {.query_dim = 3, .key_dim = 4, .value_dim = 5, .bias = false});
  const Tensor q = constant({2, 3, 3}), k = constant({2, 7, 4}), v = constant({2, 7, 5});
  const auto first_keys = [](std::size_t b, auto, std::size_t s) { return s < (b == 0 ? 7u : 2u); };
  const Attended expected = attend(layer, q.value(), k.value(), v.value(), first_keys);
  const auto mask = tg::AttentionMask::valid_lens(tg::IntArray{7, 2});
  check_close(layer(q, k, v, mask).value(), expected.out);
  check_close(layer.attention_weights(q, k, mask).value(), expected.weights);
  for (const auto* projection : {&layer.q_proj, &layer.k_proj, &layer.v_proj, &layer.out_proj})
    CHECK(!projection->bias.defined());
}

TEST_CASE("Causal attention sees no later key, and masks can be combined") {
  tg::manual_seed(15);
  const tg::MultiHeadAttention<double> layer(4, 2);
  const Tensor x = constant({2, 4, 4});
  const tg::BoolArray real{{true, true, true, true}, {true, true, false, false}};
  const auto mask = tg::AttentionMask::causal() & tg::AttentionMask::key_padding(real);
  const auto allowed = [&](std::size_t b, std::size_t t, std::size_t s) { return s <= t && real(b, s); };
  const Attended expected = attend(layer, x.value(), x.value(), x.value(), allowed);
  check_close(layer(x, mask).value(), expected.out);
  check_close(layer.attention_weights(x, x, mask).value(), expected.weights);
}

TEST_CASE("A fully masked query gets only the bias of the output projection") {
  tg::manual_seed(16);
  const tg::MultiHeadAttention<double> layer(4, 2);
  const Tensor x = constant({1, 2, 4});
  const auto nothing = tg::AttentionMask::valid_lens(tg::IntArray{0});
  const Array& bias = layer.out_proj.bias.value();
  check_close(layer(x, nothing).value(), xt::broadcast(bias, {1, 2, 4}));
  check_close(layer.attention_weights(x, x, nothing).value(), Array(tg::Shape{1, 2, 2, 2}, 0.0));
}

TEST_CASE("Attention drops weights in training and none in evaluation mode") {
  tg::manual_seed(19);
  tg::MultiHeadAttention<double> layer(4, 2, {.dropout = 0.5});
  tg::MultiHeadAttention<double> without(4, 2);
  for (auto member : {&tg::MultiHeadAttention<double>::q_proj, &tg::MultiHeadAttention<double>::k_proj,
                      &tg::MultiHeadAttention<double>::v_proj, &tg::MultiHeadAttention<double>::out_proj})
    without.*member = layer.*member;
  const Tensor x = constant({2, 5, 4});
  CHECK(layer(x).value() != layer(x).value());
  CHECK(layer.attention_weights(x, x).value() == layer.attention_weights(x, x).value());

  // Dropout keeps the output's mean.
  Array sum(tg::Shape{2, 5, 4}, 0.0);
  for (int i = 0; i < 4000; ++i) sum += layer(x).value();
  check_close(sum / 4000.0, without(x).value(), 0.05);

  tg::eval(layer);
  check_close(layer(x).value(), without(x).value());
}

TEST_CASE("Attention's error for incompatible inputs names the expected shapes") {
  tg::MultiHeadAttention<double> layer(6, 2, {.query_dim = 3, .key_dim = 4, .value_dim = 5});
  const Tensor q = constant({2, 3, 3}), k = constant({2, 7, 4}), v = constant({2, 7, 5});
  CHECK(tg::parameters(layer).size() == 8);  // traversal names the parameters
  check_error("[linear] expected an input of shape (..., 5) for v_proj.weight (6, 5), got (2, 7, 4): axis -1 is 4",
              [&] { layer(q, k, k); });
  check_error("[linear] expected an input of shape (..., 3) for q_proj.weight (6, 3), got (2, 7, 4): axis -1 is 4",
              [&] { layer.attention_weights(k, k); });
  const auto misfit = doctest::Contains("[MultiHeadAttention] expected queries");
  const Tensor other_batch = constant({1, 7, 4});
  CHECK_THROWS_WITH_AS(layer(q, k, constant({2, 6, 5})), misfit, std::invalid_argument);  // fewer values than keys
  CHECK_THROWS_WITH_AS(layer(q, other_batch, constant({1, 7, 5})), misfit, std::invalid_argument);
  CHECK_THROWS_WITH_AS(layer(q, other_batch, v), misfit, std::invalid_argument);
  CHECK_THROWS_WITH_AS(layer(q, k, constant({1, 7, 5})), misfit, std::invalid_argument);
  CHECK_THROWS_WITH_AS(layer(constant({3, 3}), k, v), misfit, std::invalid_argument);
  CHECK_THROWS_WITH_AS(layer.attention_weights(q, other_batch), misfit, std::invalid_argument);
  CHECK_THROWS_AS(layer(q, k, v, tg::AttentionMask::valid_lens(tg::IntArray{1, 2, 3})), std::invalid_argument);
  CHECK_NOTHROW(layer(q, k, v));
}
