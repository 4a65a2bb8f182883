#include <tapegrad/testing.hpp>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "in_double.hpp"
#include "special_values.hpp"
#include "text.hpp"

using tg::testing::gradcheck;

namespace {

// x^3 with a rule that multiplies by `factor` instead of 3.
Tensor cube(const Tensor& x, double factor) {
  return tg::record("cube", x.value() * x.value() * x.value(), {x},
                    [x = x.shared_value(), factor](const Array& dy, auto& dx) { dx[0] += dy * *x * *x * factor; });
}

// Returns x; its rule changes one element of the gradient.
Tensor off_in_one_element(const Tensor& x, std::size_t element, double error) {
  return tg::record("off", Array(x.value()), {x}, [element, error](const Array& dy, auto& dx) {
    Array changed = dy;
    changed.data()[element] += error;
    dx[0] += changed;
  });
}

}  // namespace

// ---- correct and wrong rules --------------------------------------------------------------------------------------

TEST_CASE("Correct rules pass, and the report counts the comparisons") {
  Parameter w(Array{{0.3, -1.2, 2.0}, {0.7, 0.1, -0.4}}), b(Array{0.5, -0.5, 1.5});
  const auto result = gradcheck([&] { return tg::sum(tg::tanh(w * w + b) * b); }, {{"w", w}, {"b", b}});
  CHECK_MESSAGE(result.ok, result.report);
  CHECK(static_cast<bool>(result));
  CHECK(contains(result.report, "9 elements agree"));
}

TEST_CASE("Outputs of any shape are checked, weighted so that errors cannot cancel in a plain sum") {
  Parameter w(Array{{0.3, -1.2, 2.0}, {0.7, 0.1, -0.4}});
  CHECK(gradcheck([&] { return tg::softmax(w, -1); }, {{"w", w}}));
  CHECK(gradcheck([&] { return tg::transpose(w, 0, 1) * 2.0; }, {{"w", w}}));
  // A softmax's sum has gradient 0, so gradcheck must weight the outputs to detect a rule without any gradient.
  const auto no_gradient = [&] {
    return tg::record("softmax", Array(tg::softmax(w.detach(), -1).value()), {w}, [](const Array&, auto&) {});
  };
  CHECK_FALSE(gradcheck(no_gradient, {{"w", w}}));
}

TEST_CASE("A wrong rule is reported with the parameter's name, index and both values") {
  Parameter w(Array{{0.1, -0.1}, {0.1, 3.0}});
  const auto result = gradcheck([&] { return tg::sum(cube(w, 2.0)); }, {{"block.weight", w}});
  CHECK_FALSE(result.ok);
  CHECK_FALSE(static_cast<bool>(result));
  CHECK(contains(result.report, "block.weight(1, 1)"));  // where the difference is largest
  CHECK(contains(result.report, "analytic"));
  CHECK(contains(result.report, "numeric"));
  CHECK(std::count(result.report.begin(), result.report.end(), '\n') == 1);
}

TEST_CASE("The report has the values of the backward pass and of the central difference") {
  Parameter w(Array(tg::Shape{}, 2.0));
  // Both have the same random weight: analytic / numeric is 1.5 / 3.
  std::istringstream report(gradcheck([&] { return cube(w, 1.5); }, {{"w", w}}).report);
  std::string text;
  double analytic = 0, numeric = 0;
  char comma = 0;
  report >> text >> text >> analytic >> comma >> text >> numeric;
  CHECK(comma == ',');
  CHECK(text == "numeric");
  CHECK(analytic / numeric == doctest::Approx(0.5).epsilon(1e-8));
}

TEST_CASE("One wrong element among many correct ones is found, with its index") {
  Parameter w(Array(tg::Shape{3, 4, 5}, 0.5));
  for (const std::size_t element : {std::size_t(0), std::size_t(27), std::size_t(59)}) {
    const auto result = gradcheck([&] { return off_in_one_element(w, element, 1e-3) * 1.0; }, {{"w", w}});
    CHECK_FALSE(result.ok);
    const std::string index = tg::to_string(tg::Shape{element / 20, element / 5 % 4, element % 5});
    CHECK_MESSAGE(contains(result.report, "w" + index), result.report);
  }
}

TEST_CASE("Of several parameters only the wrong ones are reported") {
  Parameter a(Array{0.5, 0.25}), b(Array{1.0}), c(Array{2.0, -1.0}), d(Array{0.75});
  const auto result = gradcheck([&] { return tg::sum(a * d) + tg::sum(cube(b, 2.0)) + tg::sum(cube(c, 2.9)); },
                                {{"a", a}, {"b", b}, {"c", c}, {"d", d}});
  CHECK_FALSE(result.ok);
  CHECK(contains(result.report, "b(0): "));
  CHECK(contains(result.report, "c("));
  CHECK_FALSE(contains(result.report, "a("));
  CHECK_FALSE(contains(result.report, "d("));
  CHECK(std::count(result.report.begin(), result.report.end(), '\n') == 2);
}

TEST_CASE("Swapped axes and gradients lost in a detach() are found") {
  Parameter w(Array{{0.5, 1.0}, {2.0, -1.0}});
  const auto transposed = [&] {
    return tg::record("transposed", xt::transpose(w.value()), {w}, [](const Array& dy, auto& dx) { dx[0] += dy; });
  };
  CHECK_FALSE(gradcheck(transposed, {{"w", w}}));
  CHECK_FALSE(gradcheck([&] { return w.detach() * w; }, {{"w", w}}));
  CHECK_FALSE(gradcheck([&] { return w.detach() * 2.0; }, {{"w", w}}));
}

TEST_CASE("A parameter without influence on the outputs has gradient 0 and passes") {
  Parameter used(Array{0.5}), unused(Array{0.25, 4.0});
  CHECK(gradcheck([&] { return used * used; }, {{"used", used}, {"unused", unused}}));
  CHECK(gradcheck([&] { return Tensor(Array{1.0}); }, {{"unused", unused}}));
}

TEST_CASE("Parameters without elements or axes are checked like others") {
  Parameter empty(Array(tg::Shape{0, 2})), scalar(Array(tg::Shape{}, 0.5));
  CHECK(gradcheck([&] { return tg::sum(empty) + tg::exp(scalar); }, {{"empty", empty}, {"scalar", scalar}}));
  const auto wrong = gradcheck([&] { return cube(scalar, 2.0); }, {{"scalar", scalar}});
  CHECK(contains(wrong.report, "scalar(): analytic"));
}

// ---- kinks and non-finite numbers ---------------------------------------------------------------------------------

TEST_CASE("NaN and infinity are reported, in outputs and in gradients alone") {
  Parameter w(Array{1.0, -1.0, 2.0});
  const auto in_outputs = gradcheck([&] { return tg::log(w); }, {{"w", w}});
  CHECK_FALSE(in_outputs.ok);
  CHECK(contains(in_outputs.report, "nan"));

  for (const double bad : {kNaN, kInfinity}) {
    const auto in_gradient = gradcheck([&] { return off_in_one_element(w, 1, bad); }, {{"w", w}});
    CHECK_FALSE(in_gradient.ok);
    CHECK(contains(in_gradient.report, "w(1): "));
  }
}

TEST_CASE("At and near a kink the report mentions it, with both sides, and next to it the check passes") {
  Parameter w(Array{-0.5, 0.0, 0.5});
  const auto check = [&] { return gradcheck([&] { return tg::relu(w); }, {{"w", w}}); };
  for (const double near : {0.0, 4e-7}) {
    w.set_value(Array{-0.5, near, 0.5});
    const auto result = check();
    CHECK_FALSE(result.ok);
    CHECK_MESSAGE(contains(result.report, "w(1): analytic"), result.report);
    CHECK_MESSAGE(contains(result.report, "it looks like a kink: one-sided differences give"), result.report);
  }
  w.set_value(Array{-0.5, 1e-3, 0.5});
  CHECK(check());
}

TEST_CASE("A wrong rule or a large step is not mistaken for a kink, for any curvature") {
  Parameter w(Array{0.5, 1.0, 30.0, -1e-3});
  for (const double factor : {2.0, 3.1, 0.0}) {
    const auto result = gradcheck([&] { return cube(w, factor) * 100.0; }, {{"w", w}});
    CHECK_FALSE(result.ok);
    CHECK_MESSAGE(!contains(result.report, "kink"), result.report);
  }
  Parameter curved(Array{1.0});  // its one-sided slopes differ by more than the rule's error
  const auto slightly = gradcheck([&] { return cube(curved, 3 + 4.5e-6) * 100.0; }, {{"curved", curved}});
  CHECK_FALSE(slightly.ok);
  CHECK_MESSAGE(!contains(slightly.report, "kink"), slightly.report);
  const auto coarse = gradcheck([&] { return cube(w, 3.0); }, {{"w", w}}, {.step = 0.1});
  CHECK_FALSE(coarse.ok);
  CHECK_MESSAGE(!contains(coarse.report, "kink"), coarse.report);
}

TEST_CASE("The report says if f differs from call to call") {
  Parameter w(Array(tg::Shape{4, 5}, 0.5));
  const auto result = gradcheck([&] { return tg::dropout(w, 0.5, true); }, {{"w", w}});
  CHECK_FALSE(result.ok);
  CHECK_MESSAGE(result.report.starts_with("f differs from call to call with the same parameters: output("),
                result.report);
  CHECK(contains(result.report, "\nw("));
  CHECK_FALSE(contains(gradcheck([&] { return cube(w, 2.0); }, {{"w", w}}).report, "call to call"));
}

TEST_CASE("The report names the step size") {
  Parameter w(Array{200.0});
  const auto result = gradcheck([&] { return cube(w, 2.0); }, {{"w", w}}, {.step = 1e-5});
  CHECK_MESSAGE(contains(result.report, "(step 0.002)"), result.report);
}

// ---- models -------------------------------------------------------------------------------------------------------

TEST_CASE("All parameters of a model are checked and named by their paths") {
  struct Model {
    tg::Linear<double> first{3, 2}, second{2, 2};
    TAPEGRAD_FIELDS(first, second)
  } model;
  const Tensor x(Array{{0.5, -1.0, 2.0}});
  const auto right = gradcheck([&] { return model.second(tg::tanh(model.first(x))); }, model);
  CHECK_MESSAGE(right.ok, right.report);
  CHECK(contains(right.report, "14 elements agree"));
  const auto wrong = gradcheck([&] { return off_in_one_element(model.second.weight, 1, 1e-3) * 1.0; }, model);
  CHECK_FALSE(wrong.ok);
  CHECK_MESSAGE(wrong.report.starts_with("second.weight(0, 1): analytic"), wrong.report);

  tg::NamedParameters<double> named = tg::named_parameters(model);
  CHECK(gradcheck([&] { return model.first(x); }, named));
  CHECK(gradcheck([&] { return model.first(x); }, model.first, {.tolerance = 1e-7}));
}

TEST_CASE("A duplicate parameter is checked once; frozen and undefined ones, such as an omitted bias, are not") {
  Parameter w(Array{0.5, -1.0}), frozen(Array{2.0, 3.0}), bias;
  w.set_grad(Array{7.0, 8.0});
  frozen.set_requires_grad(false);
  const auto result =
      gradcheck([&] { return w * frozen; }, {{"bias", bias}, {"w", w}, {"frozen", frozen}, {"again", w}});
  CHECK_MESSAGE(result.ok, result.report);
  CHECK_MESSAGE(contains(result.report, "2 elements agree"), result.report);
  check_close(w.grad(), Array{7.0, 8.0}, 0.0);
  CHECK_FALSE(frozen.requires_grad());
}

// ---- restored state -----------------------------------------------------------------------------------------------

TEST_CASE("Values and gradients are restored, with and without an initial gradient, also if f throws in any call") {
  const Array value{0.1, 1.0 / 3.0};
  for (const int last : {0, 1, 2, 3, 4, 1000}) {  // one recorded call, then two per element
    CAPTURE(last);
    Parameter with(value), without(value);
    with.set_grad(Array{1.0, 2.0});
    int calls = 0;
    const auto check = [&] {
      return gradcheck(
          [&] {
            const Tensor y = with * without;
            if (calls++ == last) throw std::runtime_error("f fails");
            return y;
          },
          {{"with", with}, {"without", without}});
    };
    if (last < 1000)
      CHECK_THROWS_WITH_AS(check(), "f fails", std::runtime_error);
    else
      CHECK(check());
    check_close(with.value(), value, 0.0);
    check_close(without.value(), value, 0.0);
    check_close(with.grad(), Array{1.0, 2.0}, 0.0);
    CHECK_FALSE(without.has_grad());
    CHECK_FALSE(tg::Tape::records());
  }
}

TEST_CASE("Gradients are restored if a rule throws") {
  Parameter w(Array{0.5}), b(Array{0.25});
  w.set_grad(Array{7.0});
  const auto f = [&] {
    const Tensor y = tg::record("failing", Array(w.value()), {w},
                                [](const Array&, auto&) { throw std::runtime_error("the rule fails"); });
    return y + b;
  };
  CHECK_THROWS_WITH_AS(gradcheck(f, {{"w", w}, {"b", b}}), "the rule fails", std::runtime_error);
  check_close(w.grad(), Array{7.0}, 0.0);
  CHECK_FALSE(b.has_grad());
}

TEST_CASE("A check neither changes nor uses the program's random numbers") {
  Parameter w(Array{0.5, 0.25});
  const auto wrong = [&] { return cube(w, 2.0); };
  tg::manual_seed(9);
  const auto key = tg::default_generator().next_key();
  tg::manual_seed(9);
  const auto first = gradcheck(wrong, {{"w", w}});
  CHECK(tg::default_generator().next_key() == key);
  CHECK(gradcheck(wrong, {{"w", w}}).report == first.report);
}

// ---- options, errors and the result -------------------------------------------------------------------------------

TEST_CASE("The tolerance bounds the relative difference, and the step is that of the central difference") {
  Parameter w(Array{1.0});
  const auto slightly_wrong = [&] { return cube(w, 3.0 + 3e-4); };
  CHECK_FALSE(gradcheck(slightly_wrong, {{"w", w}}));
  CHECK(gradcheck(slightly_wrong, {{"w", w}}, {.tolerance = 1e-3}));
  // ((w + h)^3 - (w - h)^3) / 2h = 3 w^2 + h^2: a coarse step is off by h^2 even with the correct rule.
  const auto right = [&] { return cube(w, 3.0); };
  CHECK_FALSE(gradcheck(right, {{"w", w}}, {.step = 0.1}));
  CHECK(gradcheck(right, {{"w", w}}, {.step = 0.1, .tolerance = 0.02}));
  CHECK(gradcheck(right, {{"w", w}}, {.step = 1e-4}));
}

TEST_CASE("A check without parameters, or with outputs of changing shape, is refused") {
  Parameter w(Array{1.0, 2.0});
  CHECK_THROWS_WITH_AS(gradcheck([&] { return w * w; }, {}), Contains("[gradcheck]"), std::invalid_argument);
  int calls = 0;
  const auto changing = [&] { return calls++ == 0 ? w * w : tg::sum(w); };
  CHECK_THROWS_WITH_AS(gradcheck(changing, {{"w", w}}), Contains("got (2) and then ()"), std::invalid_argument);
  check_close(w.value(), Array{1.0, 2.0}, 0.0);
}

// ---- random directions ----------------------------------------------------------------------------------------------

TEST_CASE("Along random directions, correct rules pass and the report counts the directions") {
  Parameter w(Array{{0.3, -1.2, 2.0}, {0.7, 0.1, -0.4}}), b(Array{0.5, -0.5, 1.5}), frozen(Array{2.0});
  frozen.set_requires_grad(false);
  int calls = 0;
  const auto f = [&] {
    ++calls;
    return tg::tanh(w * w + b) * b * frozen;
  };
  const auto result = gradcheck(f, {{"w", w}, {"b", b}, {"frozen", frozen}}, {.directions = 3});
  CHECK_MESSAGE(result.ok, result.report);
  CHECK(result.report == "3 directions over 9 elements agree to 1e-06");
  CHECK(calls == 1 + 2 * 3);
}

TEST_CASE("Along random directions, a wrong rule is found and the report names its parameter") {
  const auto result_of = [](double factor, std::size_t wrong) {
    std::vector<Parameter> parameters;
    tg::NamedParameters<double> named;
    for (int i = 0; i < 7; ++i) parameters.emplace_back(Array(tg::Shape{5, 4}, 0.3 + 0.1 * i));
    for (std::size_t i = 0; i < 7; ++i) named.emplace_back("w" + std::to_string(i), parameters[i]);
    const auto f = [&] {
      Tensor sum(0.0);
      for (std::size_t i = 0; i < 7; ++i) sum = sum + tg::sum(cube(parameters[i], i == wrong ? factor : 3.0));
      return sum;
    };
    return gradcheck(f, named, {.directions = 4});
  };
  CHECK(result_of(3.0, 0));
  for (std::size_t wrong = 0; wrong < 7; ++wrong) {
    const auto result = result_of(3.003, wrong);
    CHECK_FALSE(result.ok);
    CHECK_MESSAGE(contains(result.report, "w" + std::to_string(wrong) + " along random direction "), result.report);
    CHECK(std::count(result.report.begin(), result.report.end(), '\n') == 1);
  }
}

TEST_CASE("Along random directions over 100,000 elements, correct rules pass and a factor of 1.0001 is found") {
  tg::manual_seed(1);
  Parameter w(tg::normal<double>({400, 250}));
  const Tensor x(tg::normal<double>({8, 400}));
  for (const double factor : {1.0, 1.0001}) {
    const auto f = [&] {
      const Tensor y = tg::tanh(tg::matmul(x, w) / 20.0);
      return tg::sum(
          tg::record("scaled", Array(y.value()), {y}, [factor](const Array& dy, auto& dx) { dx[0] += dy * factor; }));
    };
    CHECK(gradcheck(f, {{"w", w}}, {.directions = 4}).ok == (factor == 1));
  }
}

TEST_CASE("Along random directions, values and gradients are restored, and NaN is found") {
  Parameter w(Array{0.5, -2.0});
  w.set_grad({7.0, 8.0});
  CHECK(gradcheck([&] { return w * w; }, {{"w", w}}, {.directions = 1}));
  CHECK(w.value() == Array{0.5, -2.0});
  CHECK(w.grad() == Array{7.0, 8.0});
  CHECK_FALSE(gradcheck([&] { return tg::log(w); }, {{"w", w}}, {.directions = 1}));
}

TEST_CASE("A check in the scope of a tape uses its own tape") {
  Parameter w(Array{0.5, 0.25});
  const tg::Tape tape;
  const Tensor y = w * w;
  CHECK(gradcheck([&] { return tg::exp(w); }, {{"w", w}}));
  CHECK_FALSE(w.has_grad());
  tg::sum(y).backward();
  check_close(w.grad(), Array{1.0, 0.5}, 0.0);
}
