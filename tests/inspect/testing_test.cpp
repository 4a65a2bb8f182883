// Includes doctest.h before testing.hpp: the order must not matter.
// clang-format off
#include <doctest/doctest.h>

#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>
// clang-format on

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "in_double.hpp"
#include "special_values.hpp"
#include "text.hpp"

using tg::testing::compare;
using tg::testing::Comparison;
using Verdict = tg::testing::CompareResult::Verdict;

namespace {

struct HalfUsed {
  tg::Linear<double> used{2, 1}, unused{2, 1};
  TAPEGRAD_FIELDS(used, unused)
};

struct Forgetful {
  tg::Linear<double> listed{2, 2}, forgotten{2, 1};
  TAPEGRAD_FIELDS(listed)
};

const Tensor kInput(Array{{1.0, 2.0}});

void sweep(const HalfUsed& model) {
  tg::Tape tape;
  tg::sum(model.used(kInput)).backward();
}

template <class M> std::string report_of(const M& model) {
  std::ostringstream out;
  tg::gradient_report(out, model);
  return out.str();
}

// A parameter's line in the report on the model's gradients.
template <class M> std::string reported(const M& model, const std::string& parameter) {
  std::istringstream lines(report_of(model));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(parameter + "  ")) return line;
  return lines.str();
}

template <class M> bool sound(const M& model) {
  std::ostringstream out;
  return tg::gradient_report(out, model);
}

}  // namespace

// ---- compare ------------------------------------------------------------------------------------------------------

TEST_CASE("Arrays are exact, close, or wrong, with the largest difference and its index") {
  const Array reference{{1.0, 2.0}, {3.0, 1000.0}};
  CHECK(compare("x", reference, reference).verdict == Verdict::exact);
  CHECK(printed(compare("x", reference, reference)) == "x   (2, 2)   0   exact");

  const auto close = compare("x", Array{{1.0, 2.0}, {3.0 + 1e-10, 1000.0}}, reference);
  CHECK(close);
  CHECK(close.verdict == Verdict::close);
  CHECK(printed(close) == "x   (2, 2)   1e-10 at (1, 0)   close");

  // 0.5 is a larger fraction of 2 than 1 is of 1000.
  const auto wrong = compare("x", Array{{1.0, 2.5}, {3.0, 1001.0}}, reference);
  CHECK_FALSE(wrong);
  CHECK(printed(wrong) == "x   (2, 2)   0.5 at (0, 1)   WRONG: 2.5, the reference 2");
}

TEST_CASE("Differences are relative to the reference, not to the compared array") {
  CHECK_FALSE(compare("x", 2000.0, 1000.0, 0.75));  // off by 100% of the reference, 50% of the value
  CHECK(compare("x", 1000.0, 2000.0, 0.75));
  const auto result = compare("x", Array{30, 110}, Array{10, 100}, 0.5);
  CHECK_FALSE(result);
  CHECK(result.index == tg::Shape{0});
  CHECK(result.difference == 20);
  CHECK(compare("x", Array{1.5, 0.25}, Array{1, 0}, 0.5));  // just within
  const auto largest = compare("x", Array{1.25, 1.5, 1.125}, Array{1, 1, 1}, 1);
  CHECK(largest.index == tg::Shape{1});
  CHECK(largest.mine == 1.5);
  CHECK_FALSE(compare("x", 0.002, 0.0, 1e-3));
  CHECK(compare("x", 0.002, 0.0, 2e-3));
}

TEST_CASE("Tensors, parameters, arrays of both number types, expressions and numbers can be compared") {
  const Array x{1.0, 2.0};
  CHECK(compare("x", Tensor(x), Parameter(x)).verdict == Verdict::exact);
  CHECK(compare("x", tg::Array<float>{1.0F, 2.0F}, Tensor(x)).verdict == Verdict::exact);
  CHECK(compare("x", x + x, x * 2.0).verdict == Verdict::exact);
  CHECK(compare("x", 3, Array(tg::Shape{}, 3.0)).verdict == Verdict::exact);
  CHECK(compare("x", Array(tg::Shape{0, 2}), Array(tg::Shape{0, 2})).verdict == Verdict::exact);
}

TEST_CASE("Different shapes are wrong, and equal infinities exact") {
  const auto shapes = compare("dW", Array(tg::Shape{2, 3}, 0.0), Array(tg::Shape{3, 2}, 0.0));
  CHECK_FALSE(shapes);
  CHECK(printed(shapes) == "dW   (2, 3) for (3, 2)   -   WRONG");
  CHECK(compare("x", kInfinity, kInfinity).verdict == Verdict::exact);
  CHECK_FALSE(compare("x", -kInfinity, kInfinity));
}

TEST_CASE("A NaN stays the reported difference, whatever follows") {
  const auto result = compare("x", Array{1, kNaN, 2.0000000001}, Array{1, 5, 2});
  CHECK_FALSE(result);
  CHECK(result.index == tg::Shape{1});
  CHECK(std::isnan(result.mine));
  CHECK_FALSE(compare("x", Array{kNaN, 2}, Array{1, 2}));
  CHECK_FALSE(compare("x", Array{1, 2}, Array{1, kNaN}));
  CHECK(compare("x", Array{9, kNaN, 7}, Array{0, kNaN, 7}).index == tg::Shape{1});
}

TEST_CASE("A comparison prints its steps aligned") {
  Comparison steps;
  CHECK(steps.add("dO", "2/n (O - Y)", Array{1.0, 2.0}, Array{1.0, 2.0}));
  CHECK(steps.add("dWo", "", Array{{1.0, 1.0 + 1e-12}}, Array{{1.0, 1.0}}));
  CHECK(steps);
  CHECK(printed(steps) ==
        "                               largest difference\n"
        "  dO    2/n (O - Y)   (2)      0                    exact\n"
        "  dWo                 (1, 2)   1e-12 at (0, 1)      close\n");
}

TEST_CASE("A comparison stops at the first wrong step and describes it") {
  Comparison steps(1e-6);
  CHECK(steps.add("a", 1.0, 1.0));
  CHECK_FALSE(steps.add("b", Array{1.0, 2.0}, Array{1.0, 2.5}));
  CHECK_FALSE(steps.add("c", 1.0, 1.0));
  CHECK_FALSE(steps);
  CHECK(printed(steps) ==
        "            largest difference\n"
        "  a   ()    0                    exact\n"
        "  b   (2)   0.5 at (1)           WRONG\n"
        "b(1) is 2, the reference 2.5; the tolerance is 1e-06\n"
        "stopped there; later steps that were not compared: 1\n");

  Comparison shapes;
  shapes.add("d", Array{1.0, 2.0}, 1.0);
  CHECK(contains(printed(shapes), "d has the shape (2), the reference ()\n"));
}

// ---- doctest ------------------------------------------------------------------------------------------------------

TEST_CASE("CHECK_GRADIENTS takes gradcheck's arguments") {
  HalfUsed model;
  CHECK_GRADIENTS([&] { return model.used(kInput) + model.unused(kInput); }, model);
  CHECK_GRADIENTS([&] { return tg::tanh(model.used(kInput)); }, {{"weight", model.used.weight}}, {.step = 1e-5});
}

TEST_CASE("Arrays, shapes and results are readable in doctest's messages") {
  const auto text = [](const auto& x) { return std::string(doctest::toString(x).c_str()); };
  CHECK(text(Array{{1.0, 2.5}}) == "(1, 2) {{ 1. ,  2.5}}");
  CHECK(text(tg::Array<float>{0.5F}) == "(1) { 0.5}");
  CHECK(text(tg::IntArray{1, 2}) == "(2) {1, 2}");
  CHECK(text(tg::BoolArray{true, false}) == "(2) { true, false}");
  CHECK(text(tg::Shape{2, 3}) == "(2, 3)");
  CHECK(contains(text(Tensor(Array{1.0})), "Tensor<double> (1)"));
  CHECK(text(compare("x", 1, 1)) == "x   ()   0   exact");
  Parameter w(Array{1.0});
  CHECK(text(tg::testing::gradcheck([&] { return w * 2.0; }, {{"w", w}})) == "1 elements agree to 1e-06");
}

// ---- gradient_report ----------------------------------------------------------------------------------------------

TEST_CASE("Before backward() the report says that there are no gradients") {
  const HalfUsed model;
  CHECK_FALSE(sound(model));
  CHECK(report_of(model) ==
        "none of 4 parameters has a gradient: backward() was not called, or zero_grad() after it\n");
  HalfUsed half_frozen;
  half_frozen.unused.weight.set_requires_grad(false);
  CHECK(reported(half_frozen, "none") ==
        "none of 3 parameters has a gradient: backward() was not called, or zero_grad() after it\n");
  CHECK_FALSE(sound(half_frozen));
}

TEST_CASE("Parameters without a gradient are named") {
  const HalfUsed model;
  sweep(model);
  CHECK(reported(model, "used.weight") == "used.weight    (1, 2)  |gradient| 2.24");
  CHECK(contains(reported(model, "unused.weight"), "no gradient      the loss does not depend on it: unused"));
  CHECK_FALSE(sound(model));
  tg::Tape tape;
  tg::sum(model.unused(kInput)).backward();
  CHECK(sound(model));
}

TEST_CASE("A parameter reached by backward but not listed by the model is named, and frozen ones are fine") {
  Forgetful model;
  {
    tg::Tape tape;
    tg::sum(model.forgotten(model.listed(kInput))).backward();
    CHECK_FALSE(sound(model));
    const std::string report = report_of(model);
    CHECK(contains(report, "?              (1, 2)  not listed  "));
    CHECK(contains(report, "  the loss depends on it, through linear: is its layer missing from TAPEGRAD_FIELDS?"));
    CHECK(contains(report, "?              (1)     not listed  "));
    model.forgotten.weight.set_name("value.weight");  // like a traversal of another model
    CHECK(contains(report_of(model), "value.weight   (1, 2)  not listed"));
  }
  CHECK_FALSE(sound(model));  // without the tape they are only counted
  CHECK(contains(report_of(model), "2 more                 not listed  "));
  {
    tg::Tape tape;
    tg::sum(model.listed(kInput)).backward();
  }
  CHECK(sound(model));

  HalfUsed frozen;
  frozen.unused.weight.set_requires_grad(false);
  frozen.unused.bias.set_requires_grad(false);
  sweep(frozen);
  CHECK(reported(frozen, "unused.weight") == "unused.weight  (1, 2)  frozen");
  CHECK(sound(frozen));
  for (const auto& named : tg::named_parameters(frozen)) named.second->set_requires_grad(false);
  frozen.used.weight.zero_grad(), frozen.used.bias.zero_grad();
  CHECK(reported(frozen, "used.weight") == "used.weight    (1, 2)  frozen");
  CHECK(sound(frozen));
}

TEST_CASE("A listed parameter cleared or frozen after the backward pass does not count as missing") {
  HalfUsed model;
  for (const bool freeze : {false, true}) {
    sweep(model);
    freeze ? model.used.bias.set_requires_grad(false) : model.used.bias.zero_grad();
    CHECK_FALSE(contains(report_of(model), "not listed"));
  }
}

TEST_CASE("Unlisted parameters are those of the last backward pass, and include no other tensors") {
  Forgetful model;
  for (const bool all : {false, true}) {  // without zero_grad() between them
    tg::Tape tape;
    Tensor y = model.listed(kInput);
    y.retain_grad();
    tg::sum(all ? model.forgotten(y) : y).backward();
    CHECK(sound(model) != all);
    CHECK(contains(report_of(model), "not listed") == all);
  }
}

TEST_CASE("Gradients that were never cleared are named, and distinguished from accumulated batches") {
  HalfUsed model;
  sweep(model);
  CHECK(model.used.weight.sweeps().total == 1);
  sweep(model);
  CHECK(reported(model, "used.weight").ends_with("2 backward passes added up"));
  CHECK_FALSE(model.used.weight.sweeps().over_changed_values());

  tg::SGD<double> optimizer(tg::parameters(model));
  optimizer.step();  // with both gradients, which is permitted
  CHECK_FALSE(model.used.weight.sweeps().over_changed_values());
  sweep(model);
  CHECK(contains(reported(model, "used.weight"),
                 "3 backward passes added up over changed values: zero_grad() forgotten?"));
  CHECK_FALSE(sound(model));
  optimizer.step();
  CHECK(model.used.weight.sweeps().over_changed_values());  // still

  optimizer.zero_grad();
  sweep(model);
  CHECK(reported(model, "used.weight") == "used.weight    (1, 2)  |gradient| 2.24");
}

TEST_CASE("Backward passes are counted with hooks, once per pass, and not for copies") {
  Parameter w(Array{2.0});
  w.register_hook([](auto&) {});
  tg::Tape tape;
  tg::sum(w * w + w).backward();
  CHECK(w.sweeps().total == 1);
  const Parameter copy = w;
  CHECK(copy.sweeps().total == 0);
  w = copy;
  CHECK(w.sweeps().total == 0);
  w.remove_hooks();
}

TEST_CASE("Zero and non-finite gradients are named") {
  HalfUsed model;
  model.used.weight.set_grad(Array{{0.0, 0.0}});
  CHECK(reported(model, "used.weight").ends_with("|gradient| 0  all zeros"));
  model.used.weight.set_grad(Array{{0.0, kNaN}});
  CHECK(contains(reported(model, "used.weight"), "not finite: Tape({.detect_anomaly = true})"));

  Parameter alone(Array{1.0, 2.0});
  for (const double element : {0.5, kNaN}) {
    alone.set_grad(Array{0.0, element});
    CHECK(sound(alone) == std::isfinite(element));
  }
}

TEST_CASE("Parameters without elements are never reported as zeros, copies or missing") {
  for (const tg::Shape& shape : std::vector<tg::Shape>{{0}, {0, 3}, {2, 0}}) {
    std::map<std::string, Parameter> model{
        {"first", Parameter(Array(shape))}, {"second", Parameter(Array(shape))}, {"third", Parameter(Array{1.0})}};
    tg::Tape tape({.profile = true, .detect_anomaly = true});
    (tg::sum(model["first"]) + tg::sum(tg::exp(model["second"])) + tg::sum(model["third"])).backward();
    CHECK(sound(model));
    const std::string text = tg::to_string(shape), gap(2 + std::max<std::size_t>(0, text.size() - 3), ' ');
    CHECK(report_of(model) == "first   " + text + "  |gradient| 0\nsecond  " + text + "  |gradient| 0\nthird   (1)" +
                                  gap + "|gradient| 1\n");
    CHECK_FALSE(contains(listing(model), "cop"));
    model["third"].set_grad(Array{0.0});
    CHECK(contains(reported(model, "third"), "all zeros"));
  }
}

TEST_CASE("A parameter that a pass reached without a gradient is distinguished from an unused one") {
  HalfUsed model;
  sweep(model);
  tg::Tape tape;
  const Tensor y =
      tg::record("stop", Array(model.unused.weight.value()), {model.unused.weight}, [](const Array&, auto&) {});
  tg::sum(y).backward();
  CHECK(
      contains(reported(model, "unused.weight"), "a backward pass reached it, but no operation passed it a gradient"));
}

// ---- CHECK_CLOSE ----------------------------------------------------------------------------------------------------

TEST_CASE("CHECK_CLOSE takes tensors, arrays, expressions, nested braces and numbers") {
  const Array a{{1.0, 2.0}, {3.0, 4.0}};
  CHECK_CLOSE(a, a);
  CHECK_CLOSE(Tensor(a), a + 1e-10);
  CHECK_CLOSE(2.0 * a, {{2, 4}, {6, 8}});
  CHECK_CLOSE(tg::sum(Tensor(a), {1}), {3, 7});
  CHECK_CLOSE(0.5, 0.5);
  CHECK_CLOSE(tg::IntArray{1, 2}, {1, 2});
  CHECK_CLOSE(a, a + 0.01, 0.02);
  CHECK_CLOSE(tg::Array<float>{0.1F, 0.2F}, {0.1, 0.2});  // a float has 7 digits
}

TEST_CASE("CHECK_CLOSE names the worst element and both values") {
  const auto result = tg::testing::close(Array{{1.0, 2.0}, {3.0, 4.0}}, {{1.0, 2.5}, {3.1, 4.0}});
  CHECK_FALSE(result);
  CHECK(printed(result) == "actual   (2, 2)   0.5 at (0, 1)   WRONG: 2, the reference 2.5");
  CHECK_FALSE(tg::testing::close(Array{1.0, 2.0}, {{1.0, 2.0}}));
  CHECK_FALSE(tg::testing::close(1.0, 1.0 + 1e-8));
  CHECK_FALSE(tg::testing::close(Array{1.0}, Array{2.0}, 0.4));
}
