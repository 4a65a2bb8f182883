/// What the table of operations leaves out: kinks, ties, infinities and NaN, random numbers, long sums.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "close.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Tensor = tg::Tensor<double>;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The gradient of the sum of f(x).
template <class F> Array gradient(const Array& x, F f) {
  const tg::Parameter<double> parameter(x);
  tg::Tape tape;
  tg::sum(f(parameter)).backward();
  return parameter.grad();
}

template <class T> bool all_nan(const tg::Array<T>& x) {
  return std::all_of(x.begin(), x.end(), [](T value) { return std::isnan(value); });
}

}  // namespace

TEST_CASE("At their kinks abs and relu have gradient 0") {
  check_close(gradient({-1, 0, 2}, [](const Tensor& x) { return tg::abs(x); }), Array{-1, 0, 1});
  check_close(gradient({-1, 0, 2}, [](const Tensor& x) { return tg::relu(x); }), Array{0, 0, 1});
}

TEST_CASE("Where several elements are the largest, amax shares the gradient among them") {
  check_close(gradient({{3, 1, 3}, {2, 2, 2}}, [](const Tensor& x) { return tg::amax(x, 1); }),
              Array{{0.5, 0, 0.5}, {1.0 / 3, 1.0 / 3, 1.0 / 3}});
}

TEST_CASE("Powers at 0 are PyTorch's") {
  check_close(tg::pow(Tensor(Array{0, -2}), 0).value(), Array{1, 1});
  check_close(gradient({0, -2}, [](const Tensor& x) { return tg::pow(x, 0); }), Array{0, 0});
  check_close(gradient({0, -2}, [](const Tensor& x) { return tg::pow(x, 1); }), Array{1, 1});
  check_close(gradient({0}, [](const Tensor& x) { return tg::pow(x, 0.5); }), Array{kInfinity});
  CHECK(all_nan(tg::pow(Tensor(Array{-2}), 0.5).value()));
}

TEST_CASE("Logarithms, roots and quotients at the end of their range give infinities and NaN, as in PyTorch") {
  check_close(tg::log(Tensor(Array{0})).value(), Array{-kInfinity});
  check_close(gradient({0}, [](const Tensor& x) { return tg::log(x); }), Array{kInfinity});
  check_close(gradient({0}, [](const Tensor& x) { return tg::sqrt(x); }), Array{kInfinity});
  check_close((1.0 / Tensor(Array{0.0})).value(), Array{kInfinity});
  CHECK(all_nan(tg::log(Tensor(Array{-1})).value()));
  CHECK(all_nan(tg::sqrt(Tensor(Array{-1})).value()));
  CHECK(all_nan(tg::relu(Tensor(Array{std::nan("")})).value()));
  CHECK(all_nan(tg::amax(Tensor(Array{1, std::nan(""), 2})).value()));
}

TEST_CASE("sigmoid and tanh saturate without overflow") {
  const tg::Tensor<float> x(tg::Array<float>{-1e4F, 1e4F});
  check_close(tg::sigmoid(x).value(), Array{0, 1});
  check_close(tg::tanh(x).value(), Array{-1, 1});
}

TEST_CASE("A softmax over -inf alone is NaN, as in PyTorch") {
  const Tensor x(Array{{-kInfinity, -kInfinity}, {0, -kInfinity}});
  CHECK(all_nan(Array(tg::select(tg::softmax(x, -1), 0, 0).value())));
  CHECK(all_nan(Array(tg::select(tg::log_softmax(x, -1), 0, 0).value())));
  check_close(tg::select(tg::softmax(x, -1), 0, 1).value(), Array{1, 0});
  check_close(tg::select(tg::log_softmax(x, -1), 0, 1).value(), Array{0, -kInfinity});
}

TEST_CASE("Logits of -inf have probability 0 and pass no gradient") {
  const tg::Parameter<double> logits(Array{{0, -kInfinity, 0}});
  tg::Tape tape;
  const Tensor loss = tg::cross_entropy(logits, {0});
  loss.backward();
  CHECK(loss.item() == doctest::Approx(std::log(2)));
  check_close(logits.grad(), Array{{-0.5, 0, 0.5}});
}

TEST_CASE("A mean over labels that are all ignored is NaN and passes no gradient, as in PyTorch") {
  const tg::Parameter<double> logits(Array{{1, 2}, {3, 4}});
  tg::Tape tape;
  const Tensor loss = tg::cross_entropy(logits, {-100, -100});
  CHECK(std::isnan(loss.item()));
  loss.backward();
  check_close(logits.grad(), Array{{0, 0}, {0, 0}});
}

TEST_CASE("Cross-entropy over 50,000 classes agrees with a sum in long double") {
  constexpr std::size_t classes = 50'000;
  tg::manual_seed(1);
  const tg::Array<float> x = tg::normal<float>({1, classes}, 0, 5);
  long double sum = 0;
  for (const float value : x) sum += std::exp(static_cast<long double>(value));
  const long double loss = std::log(sum) - x(0, 123);

  const tg::Parameter<float> logits(x);
  tg::Tape tape;
  const tg::Tensor<float> y = tg::cross_entropy(logits, {123});
  y.backward();
  CHECK(std::abs(y.item() - loss) <= 1e-6L * loss);
  long double worst = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    const long double expected = std::exp(static_cast<long double>(x.data()[i])) / sum - (i == 123 ? 1 : 0);
    worst = std::max(worst, std::abs(logits.grad().data()[i] - expected) / std::abs(expected));
  }
  CHECK(worst <= 1e-5L);
  const tg::Tensor<double> exact = tg::cross_entropy(tg::Tensor<double>(x), {123});
  CHECK(std::abs(exact.item() - loss) <= 1e-13L * loss);
}

TEST_CASE("Sums and means of a million floats lose no digits, along whichever axis") {
  tg::manual_seed(1);
  const tg::Array<float> x = tg::uniform<float>({1000, 1000}, 0, 1);
  double sum = 0, column = 0;
  for (const float value : x) sum += value;
  for (std::size_t i = 0; i < 1000; ++i) column += x(i, 7);
  const tg::Tensor<float> t(x);
  CHECK(tg::sum(t).item() == doctest::Approx(sum).epsilon(1e-6));
  CHECK(tg::mean(t).item() == doctest::Approx(sum / 1e6).epsilon(1e-6));
  CHECK(tg::sum(t, 0).value()(7) == doctest::Approx(column).epsilon(1e-6));
}

TEST_CASE("dropout drops the share asked for, scales up the rest, and its gradient uses the same mask") {
  constexpr double p = 0.3;
  tg::manual_seed(5);
  const tg::Parameter<double> x(Array(tg::Shape{100'000}, 2.0));
  tg::Tape tape;
  const Tensor y = tg::dropout(x, p);
  tg::sum(y * 3.0).backward();
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = y.value()(i);
    dropped += value == 0;
    if (value != 0) REQUIRE(value == doctest::Approx(2 / (1 - p)));
    REQUIRE(x.grad()(i) == doctest::Approx(value == 0 ? 0 : 3 / (1 - p)));
  }
  CHECK(std::abs(double(dropped) / 100'000 - p) < 0.005);  // more than three standard deviations
}

TEST_CASE("Every dropout has a mask of its own, which the seed repeats, in float as in double") {
  const Tensor x(Array(tg::Shape{64}, 1.0));
  tg::manual_seed(5);
  const Array first = tg::dropout(x, 0.5).value(), second = tg::dropout(x, 0.5).value();
  tg::manual_seed(5);
  const tg::Array<float> again = tg::dropout(tg::Tensor<float>(x.value()), 0.5).value();
  CHECK(first != second);
  CHECK(first == Array(again));
}

TEST_CASE("dropout in evaluation gives the input itself") {
  const Tensor x(Array{1, 2, 3});
  CHECK(tg::dropout(x, 0.5, false).shared_value() == x.shared_value());
}

TEST_CASE("Attention drops weights, not values, and its gradient uses the same mask") {
  constexpr double p = 0.25;
  constexpr std::size_t keys = 64;
  Array identity(tg::Shape{keys, keys}, 0.0);
  for (std::size_t i = 0; i < keys; ++i) identity(i, i) = 1;
  const Tensor zeros(Array(tg::Shape{keys, 1}, 0.0));  // scores of 0: every weight is 1 / keys
  const tg::Parameter<double> values(identity);
  tg::manual_seed(6);
  tg::Tape tape;
  const Tensor y =
      tg::scaled_dot_product_attention(zeros, zeros, values, {}, {.dropout = p});  // the weights themselves
  y.backward(Array(y.shape(), 1.0));
  std::size_t dropped = 0;
  for (std::size_t key = 0; key < keys; ++key) {
    double received = 0;
    for (std::size_t query = 0; query < keys; ++query) {
      const double weight = y.value()(query, key);
      dropped += weight == 0;
      if (weight != 0) REQUIRE(weight == doctest::Approx(1 / (1 - p) / keys));
      received += weight;
    }
    CHECK(values.grad()(key, 0) == doctest::Approx(received));
  }
  CHECK(std::abs(double(dropped) / (keys * keys) - p) < 0.025);
}

TEST_CASE("argmax gives the first of equal elements") {
  CHECK(tg::argmax(Tensor(Array{{1, 3, 3}, {2, 2, 2}}), 1) == tg::IntArray{1, 0});
  CHECK(tg::argmax(Array{{1, 3, 3}, {2, 2, 2}}, -2) == tg::IntArray{1, 0, 0});
  CHECK(tg::argmax(Tensor(Array{5}), 0).dimension() == 0);
}

TEST_CASE("one_hot, causal_mask and padding_mask are what their names say, also when empty") {
  CHECK(tg::one_hot({2, 0}, 3) == tg::IntArray{{0, 0, 1}, {1, 0, 0}});
  CHECK(tg::to_string(tg::one_hot(tg::IntArray::from_shape({0}), 3).shape()) == "(0, 3)");
  CHECK(tg::causal_mask(2, 3) == tg::BoolArray{{true, false, false}, {true, true, false}});
  CHECK(tg::causal_mask(0, 3).size() == 0);
  CHECK(tg::padding_mask({{5, 9, 9}, {9, 1, 0}}, 9) == tg::BoolArray{{true, false, false}, {false, true, true}});
}
