#include <chrono>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "in_double.hpp"
#include "special_values.hpp"
#include "text.hpp"

namespace {

struct Model {
  tg::Linear<double> hidden{3, 4}, head{4, 2};
  TAPEGRAD_FIELDS(hidden, head)
  Tensor operator()(const Tensor& x) const { return head(tg::tanh(hidden(x))); }
};

// The columns of the row with this number in a printed tape.
std::vector<std::string> row(const std::string& table, const std::string& number) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> columns;
    for (std::string word; words >> word;) columns.push_back(word);
    if (!columns.empty() && columns[0] == number) return columns;
  }
  return {};
}

}  // namespace

TEST_CASE("Recorded tensors can be named while their tape exists") {
  Parameter w(Array{1.0, 2.0});
  Tensor y;
  {
    tg::Tape tape;
    y = w * 2.0;
    CHECK(y.name() == "");
    y.set_name("doubled");
    CHECK(y.name() == "doubled");
    CHECK(tg::described(y) == "doubled (2)");
    CHECK(row(printed(tape), "1")[2] == "doubled");
  }
  CHECK(y.name() == "");
  CHECK_THROWS_AS(y.set_name("late"), std::logic_error);
  CHECK_THROWS_AS(Tensor().set_name("nothing"), std::logic_error);
}

TEST_CASE("A constant's name follows its handle and later copies, and it stays a constant") {
  Tensor mask(Array{0.0, -kInfinity});
  Tensor before = mask;
  mask.set_name("mask");
  Tensor copy = mask;
  CHECK(tg::described(mask) == "mask (2)");
  CHECK(before.name() == "");
  CHECK(mask.detach().name() == "");
  copy.set_name("copy");
  CHECK(copy.name() == "copy");
  CHECK(mask.name() == "mask");

  const Parameter w(Array{1.0, 2.0});
  const tg::Tape tape({.detect_anomaly = true});
  (void)(w + mask);  // infinity from a constant is permitted
  CHECK(tape.size() == 2);
  CHECK_FALSE(mask.requires_grad());
  CHECK_FALSE(mask.has_grad());
  CHECK_THROWS_WITH_AS(mask.grad(), Contains("a constant"), std::logic_error);
  CHECK_THROWS_AS(mask.retain_grad(), std::logic_error);
  CHECK_THROWS_AS(mask.register_hook([](auto&) {}), std::logic_error);
  CHECK_THROWS_WITH_AS(tg::sum(mask).backward(), Contains("depends on none"), std::logic_error);
  CHECK_THROWS_WITH_AS(mask.backward(Array{1.0, 1.0}), Contains("depends on none"), std::logic_error);
  CHECK_THROWS_WITH_AS(w + Tensor(Array{1.0, 2.0, 3.0}) * mask, Contains("mask (2)"), std::invalid_argument);
}

TEST_CASE("Errors name the parameter, both shapes and the incompatible axis") {
  Model model;
  tg::parameters(model);
  CHECK_THROWS_WITH_AS(
      model.head.weight + Tensor(Array(xt::ones<double>({3, 4}))),
      "[add] expected shapes that broadcast together, got head.weight (2, 4) and (3, 4): they differ in axis -2",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(Tensor(Array(xt::ones<double>({2, 3}))) * model.head.weight,
                       Contains("got (2, 3) and head.weight (2, 4): they differ in axis -1"), std::invalid_argument);
}

TEST_CASE("A printed tape has a row per node, with its inputs") {
  Parameter w(Array{{1.0, 2.0}, {3.0, 4.0}});
  w.set_name("w");
  tg::Tape tape;
  const Tensor y = tg::sum(tg::matmul(w, Tensor(Array{1.0, 1.0})) * w);
  const std::string table = printed(tape);
  CHECK(row(table, "0") == std::vector<std::string>{"0", "parameter", "w", "(2,", "2)", "-", "-", "-", "-"});
  CHECK(row(table, "1") == std::vector<std::string>{"1", "matmul", "(2)", "#0", "const", "-", "-", "-", "-"});
  CHECK(row(table, "2")[1] == "mul");
  CHECK(row(table, "3")[1] == "sum");
  CHECK(row(table, "4").empty());
  y.backward();
  CHECK(row(printed(tape), "0").back() != "-");  // the parameter has a gradient now
}

TEST_CASE("A profiling tape shows each operation's saved bytes and gradient norm") {
  Parameter w(Array{3.0, 4.0});
  tg::Tape tape({.profile = true});
  const Tensor y = tg::exp(w);  // saves its output: two doubles
  y.backward(Array{0.6, 0.8});
  const std::vector<std::string> columns = row(printed(tape), "1");
  CHECK(columns[1] == "exp");
  CHECK(columns[4] == "16");
  CHECK(columns[5] == "B");
  CHECK(columns.back() == "1");  // sqrt(0.6^2 + 0.8^2)
  const std::string& unit = columns[columns.size() - 2];
  CHECK((unit == "us" || unit == "ms"));  // backward took time, on a busy machine a lot
}

TEST_CASE("A profile uses microseconds and milliseconds, and bytes and kilobytes") {
  const auto saving = [](std::size_t count) {
    const Parameter p(Array(tg::Shape{count}, 1.0));
    tg::Tape tape({.profile = true});
    const Tensor y = tg::exp(p);  // saves its output
    return printed(tape);
  };
  CHECK(saving(15).find(" 120 B ") != std::string::npos);
  CHECK(saving(124).find(" 992 B ") != std::string::npos);
  CHECK(saving(150).find(" 1.2 KB ") != std::string::npos);
  CHECK(saving(1500).find(" 12 KB ") != std::string::npos);

  const Parameter p(Array{1});
  tg::Tape tape({.profile = true});
  const Tensor y = tg::record("slow", Array(p.value()), {p}, [](const auto& dy, auto& dx) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    dx[0] += dy;
  });
  y.backward();
  CHECK(printed(tape).find(" ms ") != std::string::npos);
}

TEST_CASE("A printed tape shows NaN gradients, of operations and parameters") {
  const Parameter w(Array{0.0});
  const tg::Tape tape({.profile = true});
  const Tensor y = w * 2.0;
  (y * kNaN).backward();
  CHECK(row(printed(tape), "0").back() == "NaN");
  const std::vector<std::string> mul = row(printed(tape), "1");
  CHECK(mul[mul.size() - 2] == "NaN");
  CHECK(mul.back() == "other=2");
}

TEST_CASE("A printed tape aligns names in any alphabet") {
  const auto printed_with = [](const std::string& name) {
    Parameter w(Array{1.0, 2.0}), short_name(Array{1.0});
    w.set_name(name);
    short_name.set_name("b");
    const tg::Tape tape;
    const Tensor y = w * short_name;
    return printed(tape);
  };
  std::string expected = printed_with("grosse");
  expected.replace(expected.find("grosse"), 6, "größte");
  CHECK(printed_with("größte") == expected);
}

TEST_CASE("A tape is written as a graph with escaped node names and edges from their inputs") {
  Parameter w(Array{1.0});
  w.set_name("the \"first\" \\ weight");
  tg::Tape tape;
  Tensor y = tg::exp(w);
  y.set_name("two\nlines");
  (void)(y * Tensor(Array{2.0}));
  std::ostringstream dot;
  tape.to_dot(dot);
  const std::string graph = dot.str();
  CHECK(graph.starts_with("digraph tape {"));
  for (const std::string part :
       {R"-(d0 [label="the \"first\" \\ weight\n(1)")-", R"(label="two lines\n)", "d0 -> d1;", "d1 -> d2;"}) {
    CAPTURE(part);
    CHECK(graph.find(part) != std::string::npos);
  }
  CHECK(graph.find("d-1") == std::string::npos);  // a constant has no node
}

TEST_CASE("Hooks see the complete gradient of one backward pass, and their changes propagate, until they are removed") {
  Parameter w(Array{2.0});
  std::vector<double> seen, seen_by_parameter;
  w.register_hook([&](auto& gradient) { seen_by_parameter.push_back(gradient(0)); });
  w.register_hook([](auto& gradient) { gradient *= 0.5; });
  const auto sweep = [&] {
    const tg::Tape tape;
    Tensor y = w * 3.0;
    y.register_hook([&](auto& gradient) {
      seen.push_back(gradient(0));
      gradient *= 10.0;
    });
    (tg::sum(y) + tg::sum(y)).backward();
  };
  sweep();
  sweep();
  CHECK(seen == std::vector<double>{2, 2});
  CHECK(seen_by_parameter == std::vector<double>{60, 60});
  CHECK(w.grad()(0) == 60);  // twice half
  w.remove_hooks();
  sweep();
  CHECK(seen_by_parameter.size() == 2);
  CHECK(w.grad()(0) == 120);
}

TEST_CASE("Anomaly mode names the operation with the first NaN, its inputs and its layer") {
  Model model;
  tg::parameters(model);
  const tg::Tape tape({.detect_anomaly = true});
  Tensor y = model(Tensor(Array(xt::ones<double>({1, 3}))));
  y.set_name("logits");
  const char* of_log = "[log] expected finite values, got NaN at (0, 0) of (1, 2) from sub #7 (1, 2)";
  const Tensor z = y - 100.0;
  CHECK_THROWS_WITH_AS(tg::log(z), of_log, std::runtime_error);
  const tg::LayerScope scope("score");
  CHECK_THROWS_WITH_AS(tg::log(z), (of_log + std::string("; in layer score")).c_str(), std::runtime_error);
  CHECK_THROWS_WITH_AS(tg::exp(y * 1e9 + 1e9), Contains("got inf at (0, 0)"), std::runtime_error);
}

TEST_CASE("Anomaly mode allows infinities from a mask, and finds a NaN behind them") {
  Parameter w(Array{{1.0, 2.0}}), matrix(Array{{1.0, 2.0}, {3.0, 4.0}});
  const tg::BoolArray hide{{true, false}};
  const tg::Tape tape({.detect_anomaly = true});
  const Tensor p = tg::softmax(tg::masked_fill(w, hide, -kInfinity) * 1.0, -1);
  CHECK(p.value()(0, 1) == 1.0);
  CHECK_THROWS_WITH_AS(tg::softmax(tg::masked_fill(w, tg::BoolArray{{true, true}}, -kInfinity), -1),
                       Contains("[softmax] expected finite values, got NaN"), std::runtime_error);
  const Tensor masked = tg::masked_fill(matrix, tg::BoolArray{{true, false}, {true, true}}, -kInfinity);
  CHECK_THROWS_WITH_AS(tg::log_softmax(masked, -1),
                       Contains("[log_softmax] expected finite values, got NaN at (1, 0) of (2, 2)"),
                       std::runtime_error);
}

TEST_CASE("The table shows operations' arguments besides tensors") {
  const Parameter w(Array{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  const tg::Tape tape({.profile = true});
  const auto last_row = [&] {
    const std::string table = printed(tape);
    const std::size_t end = table.size() - 1;
    return table.substr(table.rfind('\n', end - 1) + 1, end - table.rfind('\n', end - 1) - 1);
  };
  const auto describes = [&](const Tensor&, const std::string& arguments) {
    return last_row().ends_with("  " + arguments);
  };
  const tg::BoolArray mask{{true, false, true}};
  CHECK(describes(tg::softmax(w, -1), "axis=-1"));
  CHECK(describes(tg::masked_fill(w, mask, -1.0), "mask=(1, 3) value=-1"));
  CHECK(describes(tg::pow(w, 3.0), "exponent=3"));
  CHECK(describes(tg::reshape(w, {3, -1}), "shape=(3, -1)"));
  CHECK(describes(tg::einsum("ij,kj->ik", w, w), "equation=ij,kj->ik") == false);  // its matmul does; a reshape ends it
  CHECK(describes(tg::cross_entropy(w, tg::IntArray{0, 2}, {.label_smoothing = 0.1}),
                  "labels=(2) ignore_index=-100 label_smoothing=0.1 reduction=mean"));
  const Tensor x = tg::reshape(w, {1, 2, 3});
  CHECK(describes(tg::multi_head_attention(x, x, x, 3, tg::AttentionMask::causal()), "heads=3 scale=1 causal=true"));
}

TEST_CASE("Anomaly mode finds NaN in the backward pass, too") {
  Parameter w(Array{0.0});
  w.set_name("w");
  const tg::Tape tape({.detect_anomaly = true});
  const Tensor y = tg::sum(tg::sqrt(w) * 0.0);  // 0 times the infinite slope of sqrt at 0
  CHECK_THROWS_WITH_AS(
      y.backward(),
      "[sqrt] expected finite gradients, the backward rule produced NaN at (0) in the gradient of input 0, w (1)",
      std::runtime_error);
}
