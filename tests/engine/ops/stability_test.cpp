/// Values and gradients where float is easily inaccurate: scores of 10,000 and 50,000 classes. The expected results are
/// computed here by definition in long double.
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

// Reads row i of an array with `rows` rows; set_row writes it.
template <class T> Row row_of(const tg::Array<T>& a, std::size_t i, std::size_t rows) {
  const std::size_t n = a.size() / rows;
  return Row(a.data() + i * n, a.data() + (i + 1) * n);
}
void set_row(tg::Array<double>& a, std::size_t i, std::size_t rows, const Row& row) {
  REQUIRE(row.size() == a.size() / rows);
  std::copy(row.begin(), row.end(), a.begin() + static_cast<std::ptrdiff_t>(i * row.size()));
}

struct Expected {
  Row y, dx;
};

// Cross-entropy of one row and its gradient.
Expected cross_entropy(const Row& x, std::size_t label, Real smoothing, Real dy) {
  const Row p = softmax(x);
  const Real share = smoothing / static_cast<Real>(x.size()), total = log_sum_exp(x);
  Expected expected{{0}, Row(x.size())};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Real target = share + (i == label ? 1 - smoothing : 0);
    expected.y[0] += target * (total - x[i]);
    expected.dx[i] = dy * (p[i] - target);
  }
  return expected;
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

TEST_CASE_TEMPLATE("cross_entropy over 50,000 classes is accurate", T, float, double) {
  constexpr std::size_t kClasses = 50'000, kLabel = 1234;
  const double tolerance = std::is_same_v<T, float> ? 2e-6 : 1e-11;
  for (const double size : {0.0, 10.0, 1e4})
    for (const double smoothing : {0.0, 0.25}) {
      CAPTURE(size);
      CAPTURE(smoothing);
      const tg::Parameter<T> x(numbers<T>(draw({1, kClasses}, -size, size), 0));
      tg::Tape tape;
      const tg::Tensor<T> loss = tg::cross_entropy(x, tg::IntArray{kLabel}, {.label_smoothing = smoothing});
      loss.backward();

      const Expected expected = cross_entropy(row_of(x.value(), 0, 1), kLabel, smoothing, 1);
      tg::Array<double> dx(x.shape());
      set_row(dx, 0, 1, expected.dx);
      check_close(loss.value(), tg::Array<double>(static_cast<double>(expected.y[0])), tolerance);
      check_close(x.grad() * kClasses, dx * kClasses, tolerance);  // most are about 1 / classes
    }
}
