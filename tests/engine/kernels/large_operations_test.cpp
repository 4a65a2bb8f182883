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

// x has rows of 2010 elements, w is one row. f(x, w, first) treats the rows of x separately; x begins with row `first`
// of the whole.
constexpr std::size_t kRows = 40, kWidth = 2010;

// Elementwise kernels round alike on any number of threads; large products are split among threads.
enum class OnOtherThreads { same_bits, same_but_for_rounding };

// Every bit is the same from run to run and, except for products, on any number of threads.
template <class F> void check_bits(const std::vector<Array>& inputs, OnOtherThreads others, F f) {
  const std::vector<tg::Array<float>> once = results<float>(3, inputs, f);
  const std::vector<std::size_t> counts =
      others == OnOtherThreads::same_bits ? std::vector<std::size_t>{1, 2, 3, 7} : std::vector<std::size_t>{3};
  for (const std::size_t threads : counts) {
    CAPTURE(threads);
    const std::vector<tg::Array<float>> again = results<float>(threads, inputs, f);
    for (std::size_t i = 0; i < once.size(); ++i) {
      CAPTURE(i);  // 0: the value, then the gradient of each input
      CHECK(std::equal(once[i].begin(), once[i].end(), again[i].begin(), again[i].end()));
    }
  }
}

template <class F>
void check_by_rows(const std::string& operation, F f, OnOtherThreads others = OnOtherThreads::same_bits) {
  INFO(operation);
  tg::manual_seed(7);
  const std::vector<Array> inputs{tg::uniform<double>({kRows, kWidth}, -1, 1), tg::uniform<double>({kWidth}, -1, 1)};
  const auto whole = [&](const auto& x) { return f(x[0], x[1], std::size_t{0}); };
  const auto row_by_row = [&](const Parameters<double>& x) {
    std::vector<tg::Tensor<double>> rows;
    for (std::size_t i = 0; i < kRows; ++i)
      rows.push_back(f(tg::narrow(x[0], 0, static_cast<std::ptrdiff_t>(i), 1), x[1], i));
    return tg::cat(rows);
  };
  const std::vector<Array> expected = results<double>(1, inputs, row_by_row);
  check_same(results<double>(3, inputs, whole), expected, 1e-11);
  check_same(results<float>(3, inputs, whole), expected, 1e-4);
  check_projection(inputs, expected, whole);
  check_bits(inputs, others, whole);
}

// The rows as matrices: (rows, 2010) -> (rows, 30, 67)
template <class T> tg::Tensor<T> matrices(const tg::Tensor<T>& x) { return tg::reshape(x, {-1, 30, 67}); }

tg::BoolArray every_third(std::size_t count) {
  tg::BoolArray mask(tg::Shape{count});
  for (std::size_t i = 0; i < count; ++i) mask(i) = i % 3 == 0;
  return mask;
}

// From 0.25 to 1.75.
template <class T> tg::Array<T> class_weights(const tg::Tensor<T>&) {
  tg::Array<T> weights(tg::Shape{kWidth});
  for (std::size_t i = 0; i < kWidth; ++i) weights(i) = T(i % 7 + 1) / 4;
  return weights;
}

// A number below `end` for each row.
template <class T> tg::IntArray numbers_of_rows(const tg::Tensor<T>& x, std::size_t first, std::size_t end) {
  tg::IntArray numbers(tg::Shape{x.shape()[0]});
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers(i) = static_cast<std::int64_t>((first + i) * 7919 % end);
  return numbers;
}

// Indices below `end` for each row of x: (rows, ...extents).
template <class T>
tg::IntArray indices_of_rows(const tg::Tensor<T>& x, std::size_t first, tg::Shape extents, std::size_t end) {
  extents.insert(extents.begin(), x.shape()[0]);
  tg::IntArray indices(extents);
  const std::size_t row = indices.size() / x.shape()[0];
  for (std::size_t i = 0; i < indices.size(); ++i)
    indices.data()[i] = static_cast<std::int64_t>((first * row + i) * 7919 % end);
  return indices;
}

}  // namespace

TEST_CASE("Elementwise operations on many elements match those on few") {
  check_by_rows("add", [](const auto& x, const auto& w, auto) { return x + w; });
  check_by_rows("sub", [](const auto& x, const auto& w, auto) { return w - x; });
  check_by_rows("mul", [](const auto& x, const auto& w, auto) { return x * w; });
  check_by_rows("mul, equal shapes", [](const auto& x, const auto&, auto) { return x * x; });
  check_by_rows("div", [](const auto& x, const auto& w, auto) { return x / (w + 3); });
  check_by_rows("neg", [](const auto& x, const auto&, auto) { return -x; });
  check_by_rows("pow", [](const auto& x, const auto&, auto) { return tg::pow(x, 3); });
  check_by_rows("exp", [](const auto& x, const auto&, auto) { return tg::exp(x); });
  check_by_rows("log", [](const auto& x, const auto&, auto) { return tg::log(x + 2); });
  check_by_rows("sqrt", [](const auto& x, const auto&, auto) { return tg::sqrt(x + 2); });
  check_by_rows("abs", [](const auto& x, const auto&, auto) { return tg::abs(x); });
  check_by_rows("tanh", [](const auto& x, const auto&, auto) { return tg::tanh(x); });
  check_by_rows("sigmoid", [](const auto& x, const auto&, auto) { return tg::sigmoid(x); });
  check_by_rows("relu", [](const auto& x, const auto&, auto) { return tg::relu(x); });
  check_by_rows("gelu", [](const auto& x, const auto&, auto) { return tg::gelu(x); });
  check_by_rows("gelu by tanh", [](const auto& x, const auto&, auto) { return tg::gelu(x, tg::Gelu::tanh); });
  check_by_rows("pow of tensors", [](const auto& x, const auto& w, auto) { return tg::pow(x + 2, w); });
  check_by_rows("pow of tensors, equal shapes", [](const auto& x, const auto&, auto) { return tg::pow(x + 2, x); });
  check_by_rows("compound assignment", [](const auto& x, const auto& w, auto) {
    auto y = x * w;
    y += w;
    return y;
  });
  check_by_rows("clamp", [](const auto& x, const auto&, auto) { return tg::clamp(x, -0.5, 0.75); });
  check_by_rows("silu", [](const auto& x, const auto&, auto) { return tg::silu(x); });
  check_by_rows("softplus", [](const auto& x, const auto&, auto) { return tg::softplus(x, 3, 2.5); });
  check_by_rows("masked_fill with a tensor's value",
                [](const auto& x, const auto& w, auto) { return tg::masked_fill(x, every_third(kWidth), tg::sum(w)); });
  check_by_rows("masked_fill",
                [](const auto& x, const auto&, auto) { return tg::masked_fill(x, every_third(kWidth), 5); });
  check_by_rows("where", [](const auto& x, const auto& w, auto) { return tg::where(every_third(kWidth), x, w); });
}

TEST_CASE("Operations on many long rows match those on one row") {
  check_by_rows("sum", [](const auto& x, const auto&, auto) { return tg::sum(x, 1); });
  check_by_rows("mean", [](const auto& x, const auto&, auto) { return tg::mean(x, -1, tg::keepdims); });
  check_by_rows("amax", [](const auto& x, const auto&, auto) { return tg::amax(x, 1); });
  check_by_rows("sum of columns", [](const auto& x, const auto&, auto) { return tg::sum(matrices(x), 1); });
  check_by_rows("amax of columns", [](const auto& x, const auto&, auto) { return tg::amax(matrices(x), 1); });
  check_by_rows("var", [](const auto& x, const auto&, auto) { return tg::var(x, 1); });
  check_by_rows("var of columns", [](const auto& x, const auto&, auto) { return tg::var(matrices(x), 1, 0); });
  check_by_rows("max", [](const auto& x, const auto&, auto) { return tg::max(x, 1).values; });
  check_by_rows("max of columns", [](const auto& x, const auto&, auto) { return tg::max(matrices(x), 1).values; });
  check_by_rows("topk", [](const auto& x, const auto&, auto) { return tg::topk(x, 5).values; });
  check_by_rows("the least of columns",
                [](const auto& x, const auto&, auto) { return tg::topk(matrices(x), 3, 1, false).values; });
  check_by_rows("gather", [](const auto& x, const auto&, std::size_t first) {
    return tg::gather(x, 1, indices_of_rows(x, first, {3000}, kWidth));
  });
  check_by_rows("gather of columns", [](const auto& x, const auto&, std::size_t first) {
    return tg::gather(matrices(x), 1, indices_of_rows(x, first, {40, 60}, 30));
  });
  check_by_rows("softmax", [](const auto& x, const auto&, auto) { return 1000 * tg::softmax(x, 1); });
  check_by_rows("softmax of columns", [](const auto& x, const auto&, auto) { return tg::softmax(matrices(x), 1); });
  check_by_rows("log_softmax", [](const auto& x, const auto&, auto) { return tg::log_softmax(x, 1); });
  check_by_rows("layer_norm", [](const auto& x, const auto& w, auto) { return tg::layer_norm(x, w, w); });
  check_by_rows("rms_norm", [](const auto& x, const auto& w, auto) { return tg::rms_norm(x, w); });
  check_by_rows("cross_entropy", [](const auto& x, const auto&, std::size_t first) {
    const tg::IntArray labels = numbers_of_rows(x, first, kWidth);
    return tg::cross_entropy(x, labels,
                             {.label_smoothing = 0.1, .weight = class_weights(x), .reduction = tg::Reduction::none});
  });
  check_by_rows("cross_entropy of probabilities", [](const auto& x, const auto& w, auto) {
    return tg::cross_entropy(x, tg::expand((w + 1) * (1.0 / kWidth), x.shape()),
                             {.label_smoothing = 0.1, .weight = class_weights(x), .reduction = tg::Reduction::none});
  });
  check_by_rows("binary_cross_entropy_with_logits", [](const auto& x, const auto& w, auto) {
    return tg::binary_cross_entropy_with_logits(
        x, tg::expand(w, x.shape()),
        {.weight = class_weights(x), .pos_weight = 2 * class_weights(x), .reduction = tg::Reduction::none});
  });
  check_by_rows("mse_loss", [](const auto& x, const auto& w, auto) {
    return tg::mse_loss(x, tg::expand(w, x.shape()), tg::Reduction::none);
  });
  check_by_rows("embedding", [](const auto& x, const auto& w, std::size_t first) {
    return tg::embedding(tg::reshape(w, {3, 670}), numbers_of_rows(x, first, 3));
  });
}

TEST_CASE("The gradient of gather along the first axis of a large array accumulates at the gathered elements") {
  constexpr std::size_t rows = 300, taken = 500, columns = 600;
  tg::manual_seed(12);
  const Array x = tg::uniform<double>({rows, columns + 1}, -1, 1), dy = tg::uniform<double>({taken, columns}, -1, 1);
  tg::IntArray indices(tg::Shape{taken, columns});
  Array expected(dy.shape()), gradient(x.shape(), 0.0);
  for (std::size_t i = 0; i < taken; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t from = (i * i + 13 * j) % rows;
      indices(i, j) = static_cast<std::int64_t>(from);
      expected(i, j) = x(from, j);
      gradient(from, j) += dy(i, j);
    }
  for (const std::size_t threads : {1, 3}) {
    const Threads limit(threads);
    const tg::Parameter<double> p(x);
    tg::Tape tape;
    const tg::Tensor<double> y = tg::gather(p, 0, indices);
    y.backward(dy);
    CHECK(y.value() == expected);
    CHECK(p.grad() == gradient);
  }
}

TEST_CASE("Views of many elements match those of few") {
  check_by_rows("transpose", [](const auto& x, const auto&, auto) { return tg::transpose(matrices(x), 1, 2); });
  check_by_rows("expand", [](const auto& x, const auto&, auto) {
    return tg::expand(tg::unsqueeze(x, 1), {-1, 3, -1});
  });
  check_by_rows("repeat", [](const auto& x, const auto&, auto) { return tg::repeat(matrices(x), {1, 2, 1}); });
  check_by_rows("repeat_interleave",
                [](const auto& x, const auto&, auto) { return tg::repeat_interleave(matrices(x), 2, 1); });
  check_by_rows("select", [](const auto& x, const auto&, auto) { return tg::select(matrices(x), -1, 66); });
  check_by_rows("narrow", [](const auto& x, const auto&, auto) { return tg::narrow(matrices(x), 2, 3, 60); });
  check_by_rows("roll", [](const auto& x, const auto&, auto) { return tg::roll(matrices(x), 13, 1); });
  check_by_rows("tril", [](const auto& x, const auto&, auto) { return tg::tril(matrices(x), 3); });
  check_by_rows("triu", [](const auto& x, const auto&, auto) { return tg::triu(matrices(x), -3); });
  check_by_rows("split and cat", [](const auto& x, const auto&, auto) {
    const auto pieces = tg::split(matrices(x), 30, -1);
    return tg::cat({pieces[2], pieces[0], pieces[1], pieces[0]}, -1);
  });
  check_by_rows("stack", [](const auto& x, const auto&, auto) { return tg::stack({x, 2 * x}, -1); });
}

TEST_CASE("Large products match the products of their rows") {
  constexpr auto rounded = OnOtherThreads::same_but_for_rounding;
  const auto table = [](const auto& w) { return tg::reshape(w, {67, 30}); };
  check_by_rows("matmul of batches", [](const auto& x, const auto&, auto) {
    return tg::matmul(matrices(x), tg::transpose(matrices(x), 1, 2));
  });
  check_by_rows(
      "matmul with one matrix", [&](const auto& x, const auto& w, auto) { return tg::matmul(matrices(x), table(w)); },
      rounded);
  check_by_rows(
      "matmul with a row", [](const auto& x, const auto& w, auto) { return tg::matmul(x, w); }, rounded);
  check_by_rows(
      "linear",
      [&](const auto& x, const auto& w, auto) {
        return tg::linear(matrices(x), tg::transpose(table(w), 0, 1), tg::narrow(w, 0, 0, 30));
      },
      rounded);
  check_by_rows(
      "einsum", [&](const auto& x, const auto& w, auto) { return tg::einsum("bij,jk->bki", matrices(x), table(w)); },
      rounded);
}

TEST_CASE("More threads than chunks share a weight's gradient") {
  tg::manual_seed(11);
  const std::vector<Array> inputs{tg::uniform<double>({4500, 100}, -1, 1), tg::uniform<double>({90, 100}, -1, 1)};
  const auto f = [](const auto& x) { return tg::linear(x[0], x[1]); };
  Array(tg::Shape{99 * 90 * 100}, std::numeric_limits<double>::quiet_NaN());  // extra parts would read it
  check_same(results<double>(100, inputs, f), results<double>(1, inputs, f), 1e-11);
}

TEST_CASE("dropout on many elements does not depend on the number of threads") {
  const std::vector<Array> inputs{tg::uniform<double>({kRows, kWidth}, -1, 1)};
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
    check_bits(inputs, OnOtherThreads::same_bits, at_once);
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
