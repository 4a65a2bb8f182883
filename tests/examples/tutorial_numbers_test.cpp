// The tutorials' printed numbers match plain loops.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "by_loops.hpp"
#include "printed.hpp"
#include "special_values.hpp"

using by_loops::Attention, by_loops::product, by_loops::softmax, by_loops::transposed;

// ---- contextual_embedding -------------------------------------------------------------------------------------------

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

// ---- masking --------------------------------------------------------------------------------------------------------

namespace {

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
                    transposed(by_loops::stacked({gradient})));
    }
  }
}

TEST_CASE("masking shows a fully masked row with -10000, -1e20, -inf and masked_softmax") {
  const Printed part = run_tutorial("masking", 0).section(2);
  const Numbers scores = part.array("scores", {2, 4});
  const Numbers seen = softmax_of_seen(by_loops::stacked({by_loops::entry(scores, 0)}), {{1, 1, 0, 0}});
  const Numbers row = by_loops::entry(seen, 0);
  const Numbers even{0.25, 0.25, 0.25, 0.25}, nans(even.shape(), kNaN), zeros{0, 0, 0, 0};
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
      const Numbers scores = product(x, transposed(x));
      return softmax_of_seen(by_loops::scaled(scores, 1 / std::sqrt(2.0)), mask);
    };
    check_printed(part.array("causal weights", {4, 4}), weights());
    check_printed(part.array("causal output", {4, 2}), product(weights(), x));

    Numbers dependence = by_loops::zeros({4, 4});
    for (std::size_t i = 0; i < 4; ++i) {
      const Numbers gradient = by_loops::gradient(x, [&] {
        const Numbers output = product(weights(), x);
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

// ---- attention_levels -----------------------------------------------------------------------------------------------

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

// ---- cross_attention ------------------------------------------------------------------------------------------------

TEST_CASE("cross_attention splits heads correctly, and shows the result of a wrong reshape") {
  const Printed part = run_tutorial("cross_attention", 0).section(1);
  const Numbers x = part.array("X [batch entry]", {1, 3, 4}),
                right = part.array("right heads [batch entry, head]", {1, 2, 3, 2}),
                wrong = part.array("wrong heads [batch entry, head]", {1, 2, 3, 2});
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t d = 0; d < 2; ++d) CHECK(right(0, h, t, d) == x(0, t, 2 * h + d));
  CHECK(part.array("merged again", {1, 3, 4}) == x);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(wrong.data()[i] == x.data()[i]);  // in memory order
}

TEST_CASE("cross_attention attends from queries to the valid keys of another length") {
  for (const int seed : {0, 7}) {
    const Printed printed = run_tutorial("cross_attention", seed), all = printed.section(2), valid = printed.section(3),
                  dropout = printed.section(4);
    Numbers queries = all.array("queries", {2, 2, 4}), keys = all.array("keys = values", {2, 4, 4});
    Attention attention;
    attention.wq = all.array("W_q.weight", {4, 4}), attention.wk = all.array("W_k.weight", {4, 4});
    attention.wv = all.array("W_v.weight", {4, 4}), attention.wo = all.array("W_o.weight", {4, 4});
    attention.heads = 2;
    check_printed(all.array("weights [batch entry, head]", {2, 2, 2, 4}),
                  attention.weights(queries, keys, by_loops::all_allowed));
    check_printed(all.array("output", {2, 2, 4}), attention(queries, keys, by_loops::all_allowed));

    const Numbers lengths = valid.array("valid_lens", {2}), by_query = valid.array("valid_lens of queries", {2, 2});
    const auto of_entries = [&](std::size_t b, std::size_t, std::size_t s) { return double(s) < lengths(b); };
    const auto of_queries = [&](std::size_t b, std::size_t t, std::size_t s) { return double(s) < by_query(b, t); };
    const Numbers weights = attention.weights(queries, keys, of_entries);
    check_printed(valid.array("weights [batch entry, head]", {2, 2, 2, 4}), weights);
    check_printed(valid.array("output", {2, 2, 4}), attention(queries, keys, of_entries));
    check_printed(valid.array("weights by query [batch entry, head]", {2, 2, 2, 4}),
                  attention.weights(queries, keys, of_queries));
    check_printed(valid.array("output by query", {2, 2, 4}), attention(queries, keys, of_queries));

    const auto loss = [&] { return by_loops::mean_square(attention(queries, keys, of_queries)); };
    check_printed(valid.array("queries.grad", {2, 2, 4}), by_loops::gradient(queries, loss));
    check_printed(valid.array("keys.grad", {2, 4, 4}), by_loops::gradient(keys, loss));

    check_printed(dropout.array("weights in evaluation", {2, 2, 2, 4}), weights);
    // Of 20 visible weights; fewer about once in 50,000 seeds.
    check_dropped(dropout.array("weights in training", {2, 2, 2, 4}), weights, 2);
  }
}

TEST_CASE("cross_attention returns (2, 4, 100) for the textbook's ones, with equal weights of the valid keys") {
  const Printed printed = run_tutorial("cross_attention", 0), part = printed.section(5);
  CHECK(part.has("X (2, 4, 100), Y (2, 6, 100) -> output (2, 4, 100)"));
  CHECK(part.has("W_q      Linear  weight (100, 100)  10,000"));
  CHECK(part.has("40,000"));

  const Numbers weights = part.array("weights of head 0 [batch entry]", {2, 4, 6});
  const Numbers output = part.array("output, first 5 of 100 numbers [batch entry]", {2, 4, 5});
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t t = 0; t < 4; ++t) {
      const double length = b == 0 ? 3 : 2;
      for (std::size_t s = 0; s < 6; ++s)
        CHECK(weights(b, t, s) == doctest::Approx(double(s) < length ? 1 / length : 0).epsilon(1e-3));
      for (std::size_t d = 0; d < 5; ++d) CHECK(output(b, t, d) == output(0, 0, d));
    }
  REQUIRE(part.comparisons().size() == 1);  // with W_o W_v = 1
  CHECK(part.comparisons()[0].difference < 1e-12);
}

TEST_CASE("cross_attention equals the library's layer in values and in every gradient") {
  CHECK(check_compared(run_tutorial("cross_attention", 7).section(6), 1e-12) ==
        std::vector<std::string>{"output (2, 4, 100)", "output (2, 4, 100)", "queries.grad (2, 4, 100)",
                                 "keys.grad (2, 6, 100)", "W_q.weight.grad (100, 100)", "W_k.weight.grad (100, 100)",
                                 "W_v.weight.grad (100, 100)", "W_o.weight.grad (100, 100)"});
}

// ---- manual_backward ------------------------------------------------------------------------------------------------

namespace {

double mean_squared_difference(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] -= b.data()[i];
  return by_loops::mean_square(a);
}

void check_steps(const Printed& part, const std::vector<std::string>& expected) {
  std::vector<std::string> names = check_compared(part, 1e-12);
  for (std::string& name : names) name.resize(name.find(' '));
  CHECK(names == expected);
}

}  // namespace

TEST_CASE("manual_backward's gradients of one head match central differences, step by step") {
  for (const int seed : {0, 7}) {
    const Printed printed = run_tutorial("manual_backward", seed), forward = printed.section(1),
                  backward = printed.section(3);
    Numbers X = forward.array("X", {3, 2}), Wq = forward.array("Wq", {2, 4}), Wk = forward.array("Wk", {2, 4}),
            Wv = forward.array("Wv", {2, 4}), Wo = forward.array("Wo", {4, 2});
    const Numbers Y = forward.array("Y", {3, 2});

    // Each function computes the loss from one step on, for central differences at every step.
    Numbers Q, K, V, S, P, Z, O;
    const auto from_O = [&] { return mean_squared_difference(O, Y); };
    const auto from_Z = [&] { return O = product(Z, Wo), from_O(); };
    const auto from_PV = [&] { return Z = product(P, V), from_Z(); };
    const auto from_S = [&] { return P = softmax(S), from_PV(); };
    const auto from_QK = [&] { return S = by_loops::scaled(product(Q, transposed(K)), 0.5), from_S(); };
    const auto from_X = [&] {
      Q = product(X, Wq), K = product(X, Wk), V = product(X, Wv);
      return from_QK();
    };
    const double loss = from_X();
    check_printed(forward.array("Q = X Wq", {3, 4}), Q);
    check_printed(forward.array("K = X Wk", {3, 4}), K);
    check_printed(forward.array("V = X Wv", {3, 4}), V);
    check_printed(forward.array("S = Q K^T / sqrt(4)", {3, 3}), S);
    check_printed(forward.array("P = softmax(S)", {3, 3}), P);
    check_printed(forward.array("Z = P V", {3, 4}), Z);
    check_printed(forward.array("O = Z Wo", {3, 2}), O);
    check_printed(forward.array("L", {}), Numbers(loss));

    const auto check = [&](const char* name, Numbers& at, const std::function<double()>& f) {
      CAPTURE(name);
      from_X();  // restores the values of all steps
      check_printed(backward.array(name, at.shape()), by_loops::gradient(at, f));
    };
    check("dO", O, from_O);
    check("dWo", Wo, from_X);
    check("dZ", Z, from_Z);
    check("dP", P, from_PV);
    check("dV", V, from_PV);
    check("dS", S, from_S);
    check("dQ", Q, from_QK);
    check("dK", K, from_QK);
    check("dWq", Wq, from_X);
    check("dWk", Wk, from_X);
    check("dWv", Wv, from_X);
    check("dX", X, from_X);
    check_steps(backward, {"dO", "dWo", "dZ", "dP", "dV", "dS", "dQ", "dK", "dWq", "dWk", "dWv", "dX"});
  }
}

TEST_CASE("manual_backward shows the Jacobian of a softmax, and the gradient through it") {
  const Printed printed = run_tutorial("manual_backward", 0), part = printed.section(2);
  Numbers s = by_loops::entry(printed.array("S = Q K^T / sqrt(4)", {3, 3}), 0);
  Numbers jacobian = by_loops::zeros({3, 3});
  for (std::size_t i = 0; i < 3; ++i) {
    const Numbers row = by_loops::gradient(s, [&] { return softmax(s)(i); });
    for (std::size_t j = 0; j < 3; ++j) jacobian(i, j) = row(j);
  }
  const auto within = [](const Numbers& a, const Numbers& b) {  // s and dp are printed with four decimals
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a.data()[i] == doctest::Approx(b.data()[i]).epsilon(2e-4));
  };
  within(part.array("p", {3}), softmax(s));
  within(part.array("J = diag(p) - p p^T", {3, 3}), jacobian);
  const Numbers dp = by_loops::stacked({part.array("dp", {3})});
  within(part.array("ds = J dp", {3}), by_loops::entry(product(dp, jacobian), 0));
  within(part.array("ds = J dp", {3}), by_loops::entry(printed.section(3).array("dS", {3, 3}), 0));
}

TEST_CASE("manual_backward's gradients of several heads with batch, mask and biases match central differences") {
  for (const int seed : {0, 7}) {
    const Printed printed = run_tutorial("manual_backward", seed), forward = printed.section(4),
                  backward = printed.section(5);
    Numbers X = forward.array("X", {2, 3, 4});
    const Numbers Y = forward.array("Y", {2, 3, 4}), mask = forward.array("mask", {2, 1, 3, 3});
    const auto weight = [&](const char* name) { return transposed(forward.array(name, {4, 4})); };
    const auto bias = [&](const char* name) { return forward.array(name, {4}); };
    Attention a{
        weight("Wq"), weight("Wk"), weight("Wv"), weight("Wo"), bias("bq"), bias("bk"), bias("bv"), bias("bo"), 2};
    const auto allowed = [&](std::size_t b, std::size_t t, std::size_t s) { return mask(b, 0, t, s) == 1; };
    const auto loss = [&] { return mean_squared_difference(a(X, X, allowed), Y); };
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t s = 0; s < 3; ++s) {
        CHECK(mask(0, 0, t, s) == (s <= t));
        CHECK(mask(1, 0, t, s) == (s <= t && s < 2));
      }
    check_printed(forward.array("P = softmax(masked S) [sentence, head]", {2, 2, 3, 3}), a.weights(X, X, allowed));
    check_printed(forward.array("O", {2, 3, 4}), a(X, X, allowed));
    check_printed(forward.array("L", {}), Numbers(loss()));

    check_printed(backward.array("dX", {2, 3, 4}), by_loops::gradient(X, loss));
    const auto check_weight = [&](const char* name, Numbers& w) {
      check_printed(backward.array(name, {4, 4}), transposed(by_loops::gradient(w, loss)));
    };
    check_weight("dWq", a.wq), check_weight("dWk", a.wk), check_weight("dWv", a.wv), check_weight("dWo", a.wo);
    const auto check_bias = [&](const char* name, Numbers& b) {
      check_printed(backward.array(name, {4}), by_loops::gradient(b, loss));
    };
    check_bias("dbq", a.bq), check_bias("dbk", a.bk), check_bias("dbv", a.bv), check_bias("dbo", a.bo);
    check_steps(backward, {"dO", "dbo", "dWo", "dz",  "dZ",  "dP",  "dV",  "dM",  "dS",  "dQ", "dK",
                           "dq", "dk",  "dv",  "dbq", "dbk", "dbv", "dWq", "dWk", "dWv", "dX"});
  }
}
