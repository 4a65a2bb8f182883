#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "by_loops.hpp"
#include "page_data.hpp"
#include "printed.hpp"
#include "run_example.hpp"

using by_loops::product, by_loops::transposed;

namespace {

double mean_squared_difference(Numbers a, const Numbers& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] -= b.data()[i];
  return by_loops::mean_square(a);
}

void check_steps(const Printed& part, const std::vector<std::string>& expected) {
  std::vector<std::string> names;
  for (const Compared& line : part.comparisons()) {
    names.push_back(line.name);
    CAPTURE(line.name);
    CHECK(line.difference < 1e-12);
    CHECK(line.verdict != "WRONG");
  }
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
    const auto from_S = [&] { return P = by_loops::softmax(S), from_PV(); };
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
    const Numbers row = by_loops::gradient(s, [&] { return by_loops::softmax(s)(i); });
    for (std::size_t j = 0; j < 3; ++j) jacobian(i, j) = row(j);
  }
  const auto within = [](const Numbers& a, const Numbers& b) {  // s and dp are printed with four decimals
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a.data()[i] == doctest::Approx(b.data()[i]).epsilon(2e-4));
  };
  within(part.array("p", {3}), by_loops::softmax(s));
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
    by_loops::Attention a{
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

TEST_CASE("manual_backward --page shows both computations, under the names of the tables") {
  const TemporaryFolder folder;
  const Run run = run_example("manual_backward --page " + folder.path("step.html"));
  REQUIRE(run.status == 0);
  CHECK(run.out == run_example("manual_backward").out);
  const nlohmann::json steps = page_data(folder.read("step.html"))["steps"];
  REQUIRE(steps.size() == 2);
  CHECK(steps[0]["label"] == "one head");
  CHECK(steps[1]["label"] == "several heads");
  const std::set<std::string> expected[] = {{"X", "Wq", "Wk", "Wv", "Wo", "Q", "K", "V", "S", "P", "Z", "O", "Y", "L"},
                                            {"X", "Wq", "Wk", "Wv", "Wo", "bq", "bk", "bv", "bo", "q", "k", "v",
                                             "Q", "K",  "V",  "S",  "M",  "P",  "Z",  "z",  "O",  "Y", "L"}};
  for (std::size_t i = 0; i < 2; ++i) {
    std::set<std::string> names;
    for (const nlohmann::json& node : steps[i]["nodes"])
      if (node["name"] != "") names.insert(node["name"]);
    CHECK(names == expected[i]);
  }
  for (const nlohmann::json& node : steps[1]["nodes"])
    if (node["name"] == "bk") CHECK(node["gradient"]["statistics"]["norm"] < 1e-12);
}
