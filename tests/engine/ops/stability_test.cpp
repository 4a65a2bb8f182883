/// Values and gradients where float is easily inaccurate: logits of +-10,000, and 2^18 classes. The expected results
/// are computed here by definition in long double, those over 2^18 elements by the same operation in double.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <xtensor/xbuilder.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "../../operations/table.hpp"
#include "close.hpp"

namespace tg = tapegrad;

namespace {

using operations::draw, operations::numbers;
using Real = long double;
using Row = std::vector<Real>;
using Mask = tg::AttentionMask;
using Tensor = tg::Tensor<float>;

Real dot(const Row& a, const Row& b) { return std::inner_product(a.begin(), a.end(), b.begin(), Real(0)); }

Real log_sum_exp(const Row& x) {
  const Real largest = *std::max_element(x.begin(), x.end());
  Real sum = 0;
  for (const Real a : x) sum += std::exp(a - largest);
  return largest + std::log(sum);
}

Row softmax(Row x) {
  const Real total = log_sum_exp(x);
  for (Real& a : x) a = std::exp(a - total);
  return x;
}

// dx for y = softmax(x)
Row softmax_backward(const Row& y, const Row& dy) {
  const Real mean = dot(y, dy);
  Row dx(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) dx[i] = y[i] * (dy[i] - mean);
  return dx;
}

// Row i of an array with `rows` rows.
template <class T> Row row_of(const tg::Array<T>& a, std::size_t i, std::size_t rows) {
  const std::size_t n = a.size() / rows;
  return Row(a.data() + i * n, a.data() + (i + 1) * n);
}

// Arrays for single-head attention and the expected results: q, dq: (T, D), k, dk: (S, D), v, dv: (S, E), dy, y: (T,
// E). Query t sees the first visible(t) keys.
struct Attention {
  tg::Array<float> q, k, v, dy;
  tg::Array<double> y{}, dq{}, dk{}, dv{};

  template <class Visible> void compute(Visible visible) {
    y = xt::zeros<double>(dy.shape());
    dq = xt::zeros<double>(q.shape());
    dk = xt::zeros<double>(k.shape());
    dv = xt::zeros<double>(v.shape());
    const std::size_t queries = q.shape()[0], keys = k.shape()[0], width = q.shape()[1];
    for (std::size_t t = 0; t < queries; ++t) {
      Row scores(visible(t)), dp(scores.size());
      for (std::size_t s = 0; s < scores.size(); ++s) {
        scores[s] = dot(row_of(q, t, queries), row_of(k, s, keys)) / std::sqrt(static_cast<Real>(width));
        dp[s] = dot(row_of(dy, t, queries), row_of(v, s, keys));
      }
      const Row p = softmax(scores), dscores = softmax_backward(p, dp);
      const Real scale = 1 / std::sqrt(static_cast<Real>(width));
      for (std::size_t s = 0; s < scores.size(); ++s) {
        for (std::size_t i = 0; i < v.shape()[1]; ++i) {
          y(t, i) += static_cast<double>(p[s] * v(s, i));
          dv(s, i) += static_cast<double>(p[s] * dy(t, i));
        }
        for (std::size_t i = 0; i < width; ++i) {
          dq(t, i) += static_cast<double>(dscores[s] * scale * k(s, i));
          dk(s, i) += static_cast<double>(dscores[s] * scale * q(t, i));
        }
      }
    }
  }
};

// (rows, columns) -> (1, rows, 2 columns): the same columns for each of two heads.
tg::Array<float> for_two_heads(const tg::Array<float>& x) {
  return tg::unsqueeze(tg::cat({Tensor(x), Tensor(x)}, 1), 0).value();
}

}  // namespace

TEST_CASE("Attention is accurate for scores of 10,000") {
  // Scores, up to 20,000, are exact in float. Some keys give equal or nearly equal scores.
  const tg::Array<float> queries{{100, -100, 100, 64}, {-100, 100, 50, -100}, {-100, 100, 50, -100}, {1, 0, -2, 100}};
  const tg::Array<float> keys{{100, -100, 100, 100},
                              {-100, 100, 0, -100},
                              {-100, 100, 0.015625f, -100},
                              {100.015625f, -100, 100, 100},
                              {-100, 100, 0, -100}};
  // 1,500 keys form several tiles: the largest score of some queries is in the first, of others in a later one.
  for (const std::size_t times : {1, 300})
    for (const bool causal : {false, true}) {
      CAPTURE(times);
      CAPTURE(causal);
      const std::size_t count = 5 * times;
      Attention a{queries, tg::repeat_interleave(Tensor(keys), times, 0).value(), numbers<float>(draw({count, 2}), 0),
                  numbers<float>(draw({4, 2}), 1)};
      a.compute([&](std::size_t t) { return causal ? count - 3 + t : count; });  // the last of 4 sees all
      const Mask mask = causal ? Mask::causal() : Mask::none();
      {
        const tg::Parameter<float> q(a.q), k(a.k), v(a.v);
        tg::Tape tape;
        const Tensor y = tg::scaled_dot_product_attention(q, k, v, mask);
        y.backward(a.dy);
        check_close(y.value(), a.y, 1e-6);
        check_close(v.grad(), a.dv, 1e-6);
        check_close(q.grad() / 100, a.dq / 100, 1e-6);  // sums of numbers up to 100
        check_close(k.grad() / 100, a.dk / 100, 1e-6);
      }
      const tg::Parameter<float> q(for_two_heads(a.q)), k(for_two_heads(a.k)), v(for_two_heads(a.v));
      tg::Tape tape;
      const Tensor y = tg::multi_head_attention(q, k, v, 2, mask);
      y.backward(for_two_heads(a.dy));
      check_close(y.value(), for_two_heads(a.y), 1e-6);
      check_close(v.grad(), for_two_heads(a.dv), 1e-6);
      check_close(q.grad() / 100, for_two_heads(a.dq) / 100, 1e-6);
      check_close(k.grad() / 100, for_two_heads(a.dk) / 100, 1e-6);
    }
}

// ---- large extents ------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 18;

template <class T> tg::IntArray labels_of(const tg::Tensor<T>& x) { return tg::IntArray(tg::Shape{x.shape()[0]}, 1); }
template <class T> tg::Array<T> weights_of(const tg::Tensor<T>& x) {
  return tg::Array<T>(tg::Shape{x.shape().back()}, T(0.7));
}

// Every sum, mean, norm and loss over 2^18 elements. Summing them one by one in float has an error of about 1e-3,
// because all are positive and of similar size.
operations::Table sums_of_many() {
  using tg::Reduction;
  operations::Table table;
  const auto near = [](const tg::Shape& shape, double low = 0.1, double high = 0.1001) {
    return draw(shape, low, high);
  };
  const tg::Shape vector{kLarge}, row{1, kLarge}, rows{2, kLarge}, columns{kLarge, 2};
  const auto reduction = [&]<class F>(const char* name, F, double high) {
    table.add(name, "all", {near(vector, 0.1, high)}, [](const auto& x) { return F()(x[0], tg::Axes{}); });
    table.add(name, "rows", {near(rows, 0.1, high)}, [](const auto& x) { return F()(x[0], tg::Axes{1}); });
    table.add(name, "columns", {near(columns, 0.1, high)}, [](const auto& x) { return F()(x[0], tg::Axes{0}); });
  };
  reduction(
      "sum", [](const auto& x, const tg::Axes& axes) { return tg::sum(x, axes); }, 0.1001);
  reduction(
      "mean", [](const auto& x, const tg::Axes& axes) { return tg::mean(x, axes); }, 0.1001);
  reduction(
      "var", [](const auto& x, const tg::Axes& axes) { return tg::var(x, axes); }, 1);
  for (const tg::Shape& shape : {rows, columns}) {
    table.add("softmax", "", {near(shape)},
              [](const auto& x) { return tg::softmax(x[0], x[0].shape()[0] == 2 ? 1 : 0); });
    table.add("log_softmax", "", {near(shape)},
              [](const auto& x) { return tg::log_softmax(x[0], x[0].shape()[0] == 2 ? 1 : 0); });
    const std::size_t width = shape[1];
    table.add("layer_norm", "", {near(shape, 0.1, 1), near({width}, 1, 2), near({width})},
              [](const auto& x) { return tg::layer_norm(x[0], x[1], x[2]); });
    table.add("rms_norm", "", {near(shape, 0.1, 1), near({width}, 1, 2)},
              [](const auto& x) { return tg::rms_norm(x[0], x[1]); });
  }
  table.add("masked_softmax", "", {near(row)}, [](const auto& x) { return tg::masked_softmax(x[0], {}); });

  table.add("matmul", "long rows", {near(rows), near(columns)}, [](const auto& x) { return tg::matmul(x[0], x[1]); });
  table.add("matmul", "vectors", {near(vector), near(vector)}, [](const auto& x) { return tg::matmul(x[0], x[1]); });
  table.add("linear", "long rows", {near(rows), near({3, kLarge}), near({3})},
            [](const auto& x) { return tg::linear(x[0], x[1], x[2]); });
  table.add("linear", "many rows", {near(columns), near({3, 2}), near({3})},
            [](const auto& x) { return tg::linear(x[0], x[1], x[2]); });
  table.add("einsum", "", {near(columns), near(columns)},
            [](const auto& x) { return tg::einsum("ij,ik->jk", x[0], x[1]); });
  table.add("mul", "broadcast", {near(columns), near({2})}, [](const auto& x) { return x[0] * x[1]; });
  table.add("add", "broadcast", {near({1}), near(vector)}, [](const auto& x) { return x[0] + x[1]; });

  const auto losses = [&]<Reduction R>(std::integral_constant<Reduction, R>) {
    for (const tg::Shape& shape : {row, columns}) {
      const std::vector<operations::Draw> logits{near(shape)};
      const double share = 1.0 / static_cast<double>(shape[1]);
      const std::vector<operations::Draw> with_target{near(shape), near(shape, 0.5 * share, 1.5 * share)};
      table.add("cross_entropy", "labels", logits,
                [](const auto& x) { return tg::cross_entropy(x[0], labels_of(x[0]), {.reduction = R}); });
      table.add("cross_entropy", "smoothed and weighted labels", logits, [](const auto& x) {
        return tg::cross_entropy(x[0], labels_of(x[0]),
                                 {.label_smoothing = 0.9, .weight = weights_of(x[0]), .reduction = R});
      });
      table.add("cross_entropy", "probabilities", with_target,
                [](const auto& x) { return tg::cross_entropy(x[0], x[1], {.reduction = R}); });
      table.add("cross_entropy", "smoothed and weighted probabilities", with_target, [](const auto& x) {
        return tg::cross_entropy(x[0], x[1], {.label_smoothing = 0.5, .weight = weights_of(x[0]), .reduction = R});
      });
      table.add("cross_entropy", "equal probabilities", logits,
                [](const auto& x) { return tg::cross_entropy(x[0].detach(), x[0], {.reduction = R}); });
      table.add("binary_cross_entropy_with_logits", "", with_target,
                [](const auto& x) { return tg::binary_cross_entropy_with_logits(x[0], x[1], {.reduction = R}); });
      table.add("mse_loss", "", {near(shape, 0.5, 0.6), near(shape)},
                [](const auto& x) { return tg::mse_loss(x[0], x[1], R); });
    }
  };
  losses(std::integral_constant<Reduction, Reduction::mean>());
  losses(std::integral_constant<Reduction, Reduction::sum>());
  losses(std::integral_constant<Reduction, Reduction::none>());
  return table;
}

// The value and the inputs' gradients for positive cotangents of similar size.
template <class T> std::vector<tg::Array<T>> swept(const operations::Sample& sample, operations::Function<T> f) {
  std::vector<tg::Parameter<T>> x;
  for (const operations::Draw& input : sample.inputs) x.emplace_back(numbers<T>(input, x.size()));
  tg::Tape tape;
  const tg::Tensor<T> y = f(operations::Inputs<T>(x.begin(), x.end()));
  y.backward(numbers<T>(draw(y.shape(), 0.1, 0.2), x.size()));
  std::vector<tg::Array<T>> results{y.value()};
  for (const auto& parameter : x) results.push_back(parameter.grad());
  return results;
}

}  // namespace

TEST_CASE("Sums, norms, products and losses over 2^18 elements are accurate in float") {
  for (const operations::Sample& sample : sums_of_many().samples) {
    INFO(sample.title(), ", ", tg::to_string(sample.inputs[0].shape));
    const auto in_float = swept<float>(sample, sample.in_float);
    const auto in_double = swept<double>(sample, sample.in_double);
    for (std::size_t i = 0; i < in_double.size(); ++i) {
      CAPTURE(i);  // 0: the value, then the gradient of each input
      double largest = 0, difference = 0;
      for (std::size_t j = 0; j < in_double[i].size(); ++j) {
        largest = std::max(largest, std::abs(in_double[i].data()[j]));
        difference = std::max(difference, std::abs(in_float[i].data()[j] - in_double[i].data()[j]));
      }
      CHECK(difference / largest <= 2e-5);
    }
  }
}

TEST_CASE_TEMPLATE("rotary_embedding's angles are accurate at every position", T, float, double) {
  constexpr std::size_t rows = 3, heads = 2, width = 8;
  for (const std::size_t first : {0UL, 1000UL, 5'000'000UL, (1UL << 24) + 1, (1UL << 33) + 1})
    for (const double base : {10000.0, 3.0}) {
      CAPTURE(first);
      CAPTURE(base);
      const tg::Array<T> x = numbers<T>(draw({1, rows, heads * width}), 0), dy = numbers<T>(draw(x.shape()), 1);
      tg::Array<double> y(x.shape()), dx(x.shape());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / (heads * width), place = i % width, pair = place % (width / 2);
        const bool is_second = place >= width / 2;
        const std::size_t other = is_second ? i - width / 2 : i + width / 2;
        const Real frequency = std::pow(Real(base), -2 * Real(pair) / Real(width));
        const Real angle = Real(first + row) * frequency, sine = is_second ? std::sin(angle) : -std::sin(angle);
        y.data()[i] = static_cast<double>(x.data()[i] * std::cos(angle) + x.data()[other] * sine);
        dx.data()[i] = static_cast<double>(dy.data()[i] * std::cos(angle) - dy.data()[other] * sine);
      }
      const tg::Parameter<T> parameter(x);
      tg::Tape tape;
      const tg::Tensor<T> rotated = tg::rotary_embedding(parameter, heads, {.base = base, .first = first});
      rotated.backward(dy);
      const double tolerance = (std::is_same_v<T, float> ? 3e-7 : 1e-15) + 1e-15 * static_cast<double>(first);
      check_close(rotated.value(), y, tolerance);
      check_close(parameter.grad(), dx, tolerance);
    }
}
