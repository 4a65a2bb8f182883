#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "by_loops.hpp"
#include "printed.hpp"

using by_loops::softmax;

namespace {

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The softmax over the keys that `mask`, of the same shape, shows. Hidden keys are left out, not filled.
Numbers softmax_of_seen(const Numbers& scores, const Numbers& mask) {
  Numbers weights = by_loops::zeros(scores.shape());
  const std::size_t n = scores.shape().back();
  for (std::size_t row = 0; row < scores.size(); row += n) {
    double sum = 0;
    for (std::size_t j = row; j < row + n; ++j)
      if (mask.data()[j] == 1) sum += std::exp(scores.data()[j]);
    for (std::size_t j = row; j < row + n; ++j)
      if (mask.data()[j] == 1) weights.data()[j] = std::exp(scores.data()[j]) / sum;
  }
  return weights;
}

}  // namespace

TEST_CASE("masking shows that a score of 0 gets weight and a gradient, and a masked one none") {
  for (const int seed : {0, 7}) {
    const Printed part = run_tutorial("masking", seed).section(1);
    const Numbers scores = part.array("scores of sat", {1, 4}), mask = part.array("mask", {1, 4});
    CHECK(mask == Numbers{{1, 1, 1, 0}});
    Numbers multiplied = scores;
    multiplied(0, 3) = 0;
    check_printed(part.array("wrong: scores * mask", {1, 4}), multiplied);
    check_printed(part.array("wrong weights", {1, 4}), softmax(multiplied));
    check_printed(part.array("right weights", {1, 4}), softmax_of_seen(scores, mask));

    // The output is a single number, the sum of weights times values.
    for (const bool right : {false, true}) {
      Numbers v{0.5, -1, 2, 1};
      const Numbers weights = right ? softmax_of_seen(scores, mask) : softmax(multiplied);
      const Numbers gradient = by_loops::gradient(v, [&] {
        double output = 0;
        for (std::size_t j = 0; j < 4; ++j) output += weights(0, j) * v(j);
        return output;
      });
      check_printed(part.array(right ? "right V.grad" : "wrong V.grad", {4, 1}),
                    by_loops::transposed(by_loops::stacked({gradient})));
    }
  }
}

TEST_CASE("masking shows a fully masked row with -10000, -1e20, -inf and masked_softmax") {
  const Printed part = run_tutorial("masking", 0).section(2);
  const Numbers scores = part.array("scores", {2, 4});
  const Numbers seen = softmax_of_seen(by_loops::stacked({by_loops::entry(scores, 0)}), {{1, 1, 0, 0}});
  const Numbers row = by_loops::entry(seen, 0);
  const Numbers even{0.25, 0.25, 0.25, 0.25}, nans(even.shape(), not_a_number), zeros{0, 0, 0, 0};
  check_printed(part.array("weights of the row that sees a and b", {4, 4}), by_loops::stacked({row, row, row, row}));
  check_printed(part.array("weights of the row that sees none", {4, 4}), by_loops::stacked({even, even, nans, zeros}));
  const Numbers both{row(0) + 0.25, row(1) + 0.25, 0.25, 0.25};
  check_printed(part.array("gradient of each value in V", {4, 4}), by_loops::stacked({both, both, nans, row}));
}

TEST_CASE("masking shows that no word depends on a later one under a causal mask") {
  for (const int seed : {0, 7}) {
    const Printed part = run_tutorial("masking", seed).section(3);
    Numbers x = part.array("X", {4, 2}), mask = by_loops::zeros({4, 4});
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j <= i; ++j) mask(i, j) = 1;
    CHECK(part.array("mask", {4, 4}) == mask);

    const auto weights = [&] {
      const Numbers scores = by_loops::product(x, by_loops::transposed(x));
      return softmax_of_seen(by_loops::scaled(scores, 1 / std::sqrt(2.0)), mask);
    };
    check_printed(part.array("causal weights", {4, 4}), weights());
    check_printed(part.array("causal output", {4, 2}), by_loops::product(weights(), x));

    Numbers dependence = by_loops::zeros({4, 4});
    for (std::size_t i = 0; i < 4; ++i) {
      const Numbers gradient = by_loops::gradient(x, [&] {
        const Numbers output = by_loops::product(weights(), x);
        return output(i, 0) + output(i, 1);
      });
      for (std::size_t j = 0; j < 4; ++j) dependence(i, j) = std::abs(gradient(j, 0)) + std::abs(gradient(j, 1));
    }
    const Numbers printed = part.array("dependence: sums of |gradient|", {4, 4});
    check_printed(printed, dependence);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = i + 1; j < 4; ++j) CHECK(printed(i, j) == 0);
  }
}

TEST_CASE("masking builds the padding mask from ids, and combines it with the causal mask") {
  const Printed part = run_tutorial("masking", 0).section(4);
  const Numbers ids = part.array("ids", {2, 4}), scores = part.array("scores", {2, 4, 4});
  Numbers padding = by_loops::zeros({2, 4, 4}), both = padding;
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t t = 0; t < 4; ++t)
      for (std::size_t s = 0; s < 4; ++s) {
        padding(b, t, s) = ids(b, s) != 0;
        both(b, t, s) = padding(b, t, s) * (s <= t);
      }
  CHECK(part.array("padding mask", {2, 1, 4}) == Numbers{{{1, 1, 1, 0}}, {{1, 1, 1, 1}}});
  CHECK(part.array("padding mask * causal mask", {2, 4, 4}) == both);
  check_printed(part.array("padding weights", {2, 4, 4}), softmax_of_seen(scores, padding));
  check_printed(part.array("padding and causal weights", {2, 4, 4}), softmax_of_seen(scores, both));
  CHECK(check_compared(part, 1e-6).size() == 1);
}

TEST_CASE("masking shows two well-known mistakes and their corrections") {
  const Printed printed = run_tutorial("masking", 7), compared = printed.section(5), heads = printed.section(6);
  const Numbers row = compared.array("scores", {1, 4});
  check_printed(compared.array("wrong weights: scores == 0", {1, 4}), softmax_of_seen(row, {{1, 0, 1, 1}}));
  check_printed(compared.array("right weights: mask == 0", {1, 4}), softmax_of_seen(row, {{1, 1, 1, 0}}));

  const Numbers scores = heads.array("scores", {2, 2, 3, 3});
  Numbers of_heads = by_loops::zeros(scores.shape()), of_sentences = of_heads;
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t h = 0; h < 2; ++h)
      for (std::size_t t = 0; t < 3; ++t)
        for (std::size_t s = 0; s < 3; ++s) {
          of_heads(b, h, t, s) = h == 0 || s < 2;
          of_sentences(b, h, t, s) = b == 0 || s < 2;  // sentence 1 has two words
        }
  check_printed(heads.array("wrong weights", {2, 2, 3, 3}), softmax_of_seen(scores, of_heads));
  check_printed(heads.array("right weights", {2, 2, 3, 3}), softmax_of_seen(scores, of_sentences));
  CHECK(heads.has("[masked_fill] expected"));
}
