/// Operations on arrays large enough for several threads, vectors, blocks and tiles. Results must match the same
/// operations on single rows or in small steps, and gradients must match central differences along random directions.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "close.hpp"
#include "threads.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Mask = tg::AttentionMask;
template <class T> using Parameters = std::vector<tg::Parameter<T>>;

namespace {

// The value of f and the parameters' gradients for random cotangents.
template <class T, class F>
std::vector<tg::Array<T>> results(std::size_t threads, const std::vector<Array>& inputs, F f) {
  const Threads limit(threads);
  Parameters<T> x;
  for (const Array& input : inputs) x.emplace_back(input);
  tg::Tape tape;
  const tg::Tensor<T> y = f(x);
  tg::manual_seed(99);
  y.backward(tg::uniform<T>(y.shape(), -1, 1));
  std::vector<tg::Array<T>> all{y.value()};
  for (const auto& parameter : x) all.push_back(parameter.grad());
  return all;
}

template <class T>
void check_same(const std::vector<tg::Array<T>>& actual, const std::vector<Array>& expected, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);  // 0: the value, then the gradient of each input
    check_close(actual[i], expected[i], tolerance);
  }
}

// Compares the gradients, stored after the value in `results`, with a central difference along a random direction.
template <class F> void check_projection(const std::vector<Array>& inputs, const std::vector<Array>& results, F f) {
  constexpr double h = 1e-7;
  tg::manual_seed(99);
  const Array cotangents = tg::uniform<double>(results[0].shape(), -1, 1);
  std::vector<Array> directions;
  long double swept = 0, squares = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    directions.push_back(tg::uniform<double>(inputs[i].shape(), -1, 1));
    for (std::size_t j = 0; j < inputs[i].size(); ++j) {
      const double gradient = results[i + 1].data()[j];
      swept += gradient * directions[i].data()[j];
      squares += gradient * gradient;
    }
  }
  const auto at = [&](double step) {
    Parameters<double> x;
    for (std::size_t i = 0; i < inputs.size(); ++i) x.emplace_back(inputs[i] + step * directions[i]);
    const Array y = f(x).value();
    return std::inner_product(y.begin(), y.end(), cotangents.begin(), 0.0L);
  };
  const long double difference = (at(h) - at(-h)) / (2 * h);
  CHECK(std::abs(difference - swept) <= 1e-6L * std::sqrt(squares));
}

// Every bit is the same from run to run and on any number of threads.
template <class F> void check_bits(const std::vector<Array>& inputs, F f) {
  const std::vector<tg::Array<float>> once = results<float>(3, inputs, f);
  for (const std::size_t threads : {1, 2, 3, 7}) {
    CAPTURE(threads);
    CHECK(results<float>(threads, inputs, f) == once);
  }
}

}  // namespace

TEST_CASE("More threads than chunks share a weight's gradient") {
  tg::manual_seed(11);
  const std::vector<Array> inputs{tg::uniform<double>({4500, 100}, -1, 1), tg::uniform<double>({90, 100}, -1, 1)};
  const auto f = [](const auto& x) { return tg::linear(x[0], x[1]); };
  Array(tg::Shape{99 * 90 * 100}, std::numeric_limits<double>::quiet_NaN());  // extra parts would read it
  check_same(results<double>(100, inputs, f), results<double>(1, inputs, f), 1e-11);
}

TEST_CASE("dropout on many elements does not depend on the number of threads") {
  const std::vector<Array> inputs{tg::uniform<double>({300, 300}, -1, 1)};
  const auto dropped = [](const Parameters<double>& x) {
    tg::manual_seed(3);
    return tg::dropout(x[0], 0.5);
  };
  check_same(results<double>(3, inputs, dropped), results<double>(1, inputs, dropped), 0);
}

// Compares attention in tiles of queries and keys with complete scores, softmax and weighted sum.
TEST_CASE("Attention over tiles of queries and keys matches attention in three steps") {
  const auto check = [](const std::string& name, std::size_t queries, std::size_t keys, const Mask& mask,
                        double p = 0) {
    INFO(name, ": ", queries, " queries, ", keys, " keys");
    tg::manual_seed(8);
    const std::vector<Array> inputs{tg::normal<double>({1, 2, queries, 8}, 0, 2),
                                    tg::normal<double>({1, 2, keys, 8}, 0, 2), tg::normal<double>({1, 2, keys, 5})};
    const auto at_once = [&](const auto& x) {
      tg::manual_seed(9);
      return tg::scaled_dot_product_attention(x[0], x[1], x[2], mask, {.dropout = p, .scale = 0.3});
    };
    const auto in_steps = [&](const auto& x) {
      tg::manual_seed(9);
      const auto scores = tg::matmul(x[0], tg::transpose(x[1], -1, -2)) * 0.3;
      return tg::matmul(tg::dropout(tg::masked_softmax(scores, mask), p), x[2]);
    };
    const std::vector<Array> expected = results<double>(1, inputs, in_steps);
    check_same(results<double>(3, inputs, at_once), expected, 1e-11);
    check_same(results<float>(3, inputs, at_once), expected, 1e-4);
    check_projection(inputs, expected, at_once);
    check_bits(inputs, at_once);
  };

  for (const std::size_t keys : {255, 256, 257, 600}) check("no mask", 130, keys, Mask::none());
  for (const std::size_t queries : {63, 64, 65}) check("no mask", queries, 20, Mask::none());
  check("causal", 300, 300, Mask::causal());
  check("causal, more keys", 130, 600, Mask::causal());
  check("causal, more queries", 600, 130, Mask::causal());
  check("causal, long strips", 1100, 300, Mask::causal());
  check("dropout", 130, 600, Mask::none(), 0.4);

  tg::manual_seed(10);
  tg::IntArray lengths(tg::Shape{1, 130});
  for (auto& length : lengths) length = static_cast<std::int64_t>(tg::default_generator().next_key() % 601);
  lengths(0, 7) = 0;
  tg::BoolArray sparse(tg::Shape{130, 600});
  for (auto& seen : sparse) seen = tg::default_generator().next_key() % 200 == 0;  // some tiles and queries see no key
  const Mask bias = Mask::additive(tg::normal<double>({1, 2, 130, 600}, 0, 3));
  check("lengths", 130, 600, Mask::valid_lens(lengths));
  check("sparse", 130, 600, Mask::boolean(sparse));
  check("bias", 130, 600, bias);
  check("all", 130, 600, Mask::causal() & Mask::valid_lens(lengths) & bias, 0.2);
}
