#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "by_loops.hpp"
#include "printed.hpp"

using by_loops::Attention;

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
