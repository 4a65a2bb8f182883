#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "by_loops.hpp"
#include "printed.hpp"

using by_loops::Attention;

namespace {

/// Rows from, ..., from + count - 1 of a matrix, or elements of a vector.
Numbers rows(const Numbers& a, std::size_t from, std::size_t count) {
  std::vector<Numbers> chosen;
  for (std::size_t i = from; i < from + count; ++i) chosen.push_back(by_loops::entry(a, i));
  return by_loops::stacked(chosen);
}

/// Removes the axis of a single head. (B, 1, T, S) -> (B, T, S)
Numbers without_head(Numbers weights) {
  weights.reshape({weights.shape()[0], weights.shape()[2], weights.shape()[3]});
  return weights;
}

Attention three_projections(const Printed& part) {
  Attention a;
  a.wq = part.array("q_proj.weight", {4, 4}), a.bq = part.array("q_proj.bias", {4});
  a.wk = part.array("k_proj.weight", {4, 4}), a.bk = part.array("k_proj.bias", {4});
  a.wv = part.array("v_proj.weight", {4, 4}), a.bv = part.array("v_proj.bias", {4});
  return a;
}

}  // namespace

TEST_CASE("attention_levels 1 and 2 attend with three projections, and with a fused one") {
  for (const int seed : {0, 7}) {
    const Printed printed = run_tutorial("attention_levels", seed), first = printed.section(1),
                  second = printed.section(2);
    const Numbers x = first.array("X", {3, 2, 4});
    Attention attention = three_projections(first);
    check_printed(first.array("weights", {3, 2, 2}), without_head(attention.weights(x, x, by_loops::all_allowed)));
    check_printed(first.array("output", {3, 2, 4}), attention(x, x, by_loops::all_allowed));

    attention.wo = second.array("out_proj.weight", {4, 4}), attention.bo = second.array("out_proj.bias", {4});
    check_printed(second.array("output", {3, 2, 4}), attention(x, x, by_loops::all_allowed));
    CHECK(check_compared(first, 1e-12).size() == 1);  // einsum
    CHECK(check_compared(second, 1e-12).size() == 3);
  }
}

TEST_CASE("attention_levels 3 hides padding, and drops weights only in training") {
  for (const int seed : {0, 7}) {
    const Printed part = run_tutorial("attention_levels", seed).section(3);
    const Numbers x = part.array("X", {3, 4, 2}), mask = part.array("mask", {3, 4});
    const Numbers w = part.array("qkv_proj.weight", {6, 2}), b = part.array("qkv_proj.bias", {6});
    const Attention attention{rows(w, 0, 2), rows(w, 2, 2), rows(w, 4, 2), part.array("out_proj.weight", {2, 2}),
                              rows(b, 0, 2), rows(b, 2, 2), rows(b, 4, 2), part.array("out_proj.bias", {2})};
    const auto allowed = [&](std::size_t entry, std::size_t, std::size_t s) { return mask(entry, s) == 1; };
    const Numbers weights = without_head(attention.weights(x, x, allowed));
    check_printed(part.array("weights, in evaluation", {3, 4, 4}), weights);
    check_printed(part.array("output, in evaluation", {3, 4, 2}), attention(x, x, allowed));

    // Of 24 visible weights; fewer about once in 7000 seeds.
    check_dropped(part.array("weights, in training", {3, 4, 4}), weights, 4);
  }
}

TEST_CASE("attention_levels 4 attends with two heads, and its gradient matches central differences") {
  for (const int seed : {0, 7}) {
    const Printed part = run_tutorial("attention_levels", seed).section(4);
    Numbers x = part.array("X", {3, 2, 4});
    const Numbers mask = part.array("mask", {3, 2});
    Attention attention = three_projections(part);
    attention.wo = part.array("out_proj.weight", {4, 4}), attention.bo = part.array("out_proj.bias", {4});
    attention.heads = 2;
    const auto allowed = [&](std::size_t entry, std::size_t, std::size_t s) { return mask(entry, s) == 1; };
    check_printed(part.array("weights [sentence, head]", {3, 2, 2, 2}), attention.weights(x, x, allowed));
    check_printed(part.array("output", {3, 2, 4}), attention(x, x, allowed));
    check_printed(part.array("gradient of mean(output^2) in X", {3, 2, 4}),
                  by_loops::gradient(x, [&] { return by_loops::mean_square(attention(x, x, allowed)); }));
    CHECK(check_compared(part, 1e-12).size() == 1);
  }
}

TEST_CASE("attention_levels 4 equals the library's layer in values and in every gradient") {
  const Printed printed = run_tutorial("attention_levels", 0);
  CHECK(check_compared(printed.section(5), 1e-12) ==
        std::vector<std::string>{"weights (3, 8, 4, 4)", "output (3, 4, 128)", "X.grad (3, 4, 128)",
                                 "q_proj.weight.grad (128, 128)", "q_proj.bias.grad (128)",
                                 "k_proj.weight.grad (128, 128)", "k_proj.bias.grad (128)",
                                 "v_proj.weight.grad (128, 128)", "v_proj.bias.grad (128)",
                                 "out_proj.weight.grad (128, 128)", "out_proj.bias.grad (128)"});

  const Printed table = printed.section(6);  // X, its mask, and the results of the four levels
  CHECK(table.has("(3, 2, 4)    (3, 2)       (3, 2, 4)    (3, 2, 4)    (3, 2, 4)    (3, 2, 4)"));
  CHECK(table.has("(3, 4, 2)    (3, 4)       (3, 4, 2)    (3, 4, 2)    (3, 4, 2)    (3, 4, 2)"));
  CHECK(table.has("(3, 4, 128)  (3, 4)       (3, 4, 128)  (3, 4, 128)  (3, 4, 128)  (3, 4, 128)"));
}
