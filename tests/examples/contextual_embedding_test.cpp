#include <doctest/doctest.h>

#include <cmath>

#include "by_loops.hpp"
#include "printed.hpp"

using by_loops::product, by_loops::softmax, by_loops::transposed;

namespace {

/// Adds the mean of all rows to the last one. x: (T, D) -> (D)
Numbers last_with_mean(const Numbers& x) {
  Numbers sum = by_loops::entry(x, x.shape()[0] - 1);
  for (std::size_t t = 0; t < x.shape()[0]; ++t)
    for (std::size_t d = 0; d < x.shape()[1]; ++d) sum(d) += x(t, d) / static_cast<double>(x.shape()[0]);
  return sum;
}

}  // namespace

TEST_CASE("contextual_embedding gives one word two vectors, with the mean of its context and with attention") {
  const Printed printed = run_tutorial("contextual_embedding", 0);
  const Numbers table = printed.array("embedding table", {4, 3});
  const Numbers river = printed.array("the river bank", {3, 3}), money = printed.array("the money bank", {3, 3});
  const auto word = [&](std::size_t i) { return by_loops::entry(table, i); };
  CHECK(river == by_loops::stacked({word(0), word(1), word(3)}));
  CHECK(money == by_loops::stacked({word(0), word(2), word(3)}));

  check_printed(printed.array("bank + mean", {2, 3}),
                by_loops::stacked({last_with_mean(river), last_with_mean(money)}));

  const auto scores = [](const Numbers& x) { return product(x, transposed(x)); };
  check_printed(printed.array("scores", {3, 3}), scores(river));
  check_printed(printed.array("weights", {3, 3}), softmax(scores(river)));
  check_printed(printed.section(5).array("X X^T", {3, 3}), scores(river));
  check_printed(printed.array("the river bank, output", {3, 3}), product(softmax(scores(river)), river));
  check_printed(printed.array("the money bank, output", {3, 3}), product(softmax(scores(money)), money));
  CHECK(check_compared(printed.section(5), 1e-6).size() == 4);
}

TEST_CASE("contextual_embedding shows the softmax fail on large scores, and work with the maximum subtracted") {
  const Printed printed = run_tutorial("contextual_embedding", 0);
  const Numbers wrong = printed.array("wrong softmax: as written", {3, 3}),
                right = printed.array("right softmax: largest subtracted first", {3, 3});
  const Numbers expected = softmax({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
  check_printed(right, expected);
  check_printed(by_loops::entry(wrong, 0), by_loops::entry(expected, 0));
  for (std::size_t i = 3; i < 9; ++i) CHECK(std::isnan(wrong.data()[i]));
}

TEST_CASE("contextual_embedding attends with projections, for any seed") {
  for (const int seed : {0, 7}) {
    const Printed printed = run_tutorial("contextual_embedding", seed), part = printed.section(6);
    const Numbers x = printed.array("the river bank", {3, 3});
    const auto projected = [&](const char* weight) { return product(x, transposed(part.array(weight, {3, 3}))); };
    const Numbers q = projected("Wq"), k = projected("Wk"), v = projected("Wv");
    check_printed(part.array("Q", {3, 3}), q);
    check_printed(part.array("K", {3, 3}), k);
    check_printed(part.array("V", {3, 3}), v);
    const Numbers scores = by_loops::scaled(product(q, transposed(k)), 1 / std::sqrt(3.0));
    check_printed(part.array("Q K^T / sqrt(3)", {3, 3}), scores);
    check_printed(part.array("weights by projections", {3, 3}), softmax(scores));
    check_printed(part.array("output by projections", {3, 3}), product(softmax(scores), v));
    CHECK(check_compared(part, 1e-6).size() == 2);
  }
}
