#include <tapegrad/testing.hpp>

#include <memory>
#include <optional>

#include "in_double.hpp"
#include "text.hpp"

namespace {

// As in record.hpp's documentation: y = x^3, dx = 3 x^2 dy
template <class T> auto recorded_cube(const tg::Tensor<T>& x) {
  return tg::record("cube", x.value() * x.value() * x.value(), {x},
                    [x = x.shared_value()](const auto& dy, auto& dx) { dx[0] += T(3) * *x * *x * dy; });
}

// Returns x; its rule adds the given gradient to x's.
template <class G> Tensor with_gradient(const Tensor& x, G gradient) {
  return tg::record("got", Array(x.value()), {x}, [gradient](const Array&, auto& dx) { dx[0] += gradient; });
}

// The gradient received by a parameter of the given shape if a rule adds the given gradient.
template <class G> Array received(const tg::Shape& shape, const G& gradient) {
  const Parameter w(Array(shape, 1.0));
  const tg::Tape tape;
  tg::sum(with_gradient(w, gradient)).backward();
  return w.grad();
}

}  // namespace

TEST_CASE_TEMPLATE("A user-defined operation is recorded and differentiated like the library's", T, float, double) {
  const tg::Parameter<T> w(tg::Array<T>{1, -2, 0.5});
  const tg::Tape tape;
  const tg::Tensor<T> y = recorded_cube(w * 2.0);
  check_close(y.value(), Array{8.0, -64.0, 1.0}, 0.0);
  tg::sum(y * 0.5).backward();
  check_close(w.grad(), Array{12.0, 48.0, 3.0}, 0.0);
}

TEST_CASE("Without a tape or with only constant inputs, the value is computed and the rule is discarded") {
  const Parameter w(Array{2.0});
  const auto watched = std::make_shared<int>();
  const auto twice = [&watched](const Tensor& x) {
    return tg::record("twice", x.value() * 2.0, {x}, [watched](const Array& dy, auto& dx) { dx[0] += dy * 2.0; });
  };
  const Tensor without_tape = twice(w);
  CHECK(without_tape.item() == 4.0);
  CHECK_FALSE(without_tape.requires_grad());
  CHECK(watched.use_count() == 1);

  const tg::Tape tape;
  const Tensor of_constant = twice(without_tape);
  CHECK(of_constant.item() == 8.0);
  CHECK_FALSE(of_constant.requires_grad());
  CHECK(watched.use_count() == 1);

  twice(w).backward(tg::retain_graph);
  CHECK(watched.use_count() == 2);  // the tape's handle
  CHECK(tape.size() == 2);
}

TEST_CASE("The value of an operation is an expression, an array, or a value shared with the rule") {
  const Parameter w(Array{1.0, 2.0});
  const auto rule = [](const Array& dy, auto& dx) { dx[0] += dy; };
  const Array array = w.value() + 1.0;
  const tg::Value<double> value = tg::make_value<double>(array);
  const std::vector<tg::Input<double>> inputs{w};
  const tg::Tape tape;
  const Tensor tensors[] = {
      tg::record("expression", w.value() + 1.0, {w}, rule),
      tg::record("copied", array, {w}, rule),
      tg::record("moved", Array(array), {w}, rule),
      tg::record("shared", value, {w}, rule),
      tg::record("shared as mutable", tg::make_value<double>(array), {w}, rule),
      tg::record("span", Array(array), std::span(inputs), rule),
  };
  for (const Tensor& y : tensors) check_close(y.value(), Array{2.0, 3.0}, 0.0);
  CHECK(tensors[3].shared_value() == value);
  for (const Tensor& y : tensors) y.backward(Array{1.0, 10.0});
  check_close(w.grad(), Array{6.0, 60.0}, 0.0);
}

TEST_CASE("An operation describes its arguments once, only on a tape with observers") {
  const Parameter w(Array{1.0, 2.0});
  int calls = 0;
  const auto scaled = [&](double factor) {
    return tg::record(
        "scaled", w.value() * factor, {w}, [factor](const Array& dy, auto& dx) { dx[0] += factor * dy; },
        [&](auto& arguments) { ++calls, arguments.add("factor", factor); });
  };
  (void)scaled(2.0);
  {
    const tg::Tape tape;
    (void)scaled(2.0);
  }
  const tg::Tape anomaly({.detect_anomaly = true});
  (void)scaled(2.0);
  CHECK(calls == 0);
  for (const tg::TapeOptions options : {tg::TapeOptions{.profile = true}, {.keep_values = true}}) {
    const tg::Tape tape(options);
    (void)scaled(2.5);
    CHECK(contains(printed(tape), "arguments"));
    CHECK(contains(printed(tape), "factor=2.5"));
  }
  CHECK(calls == 2);
}

TEST_CASE("A rule that takes a third argument gets the operation's output") {
  const Parameter w(Array{0.5, -1.0});
  const auto exponential = [](const Tensor& x) {
    return tg::record("exponential", xt::exp(x.value()), {x},
                      [](const auto& dy, auto& dx, const auto& y) { dx[0] += y * dy; });
  };
  CHECK(tg::testing::gradcheck([&] { return exponential(w * 2.0); }, {{"w", const_cast<Parameter&>(w)}}).ok);
  const tg::Tape tape({.profile = true});
  const Tensor y = exponential(w);
  CHECK(contains(printed(tape), "16 B"));  // the output is saved
  y.backward(Array{1.0, 1.0});
  check_close(w.grad(), Array(xt::exp(w.value())), 1e-15);
}

TEST_CASE("A rule may own uncopyable objects, and is freed once it is consumed") {
  const Parameter w(Array{1.0, 2.0});
  const auto watched = std::make_shared<int>();
  auto owned = std::make_unique<std::shared_ptr<int>>(watched);
  const tg::Tape tape;
  const Tensor y = tg::record("owner", Array(w.value()), {w},
                              [owned = std::move(owned)](const Array& dy, auto& dx) { dx[0] += dy; });
  CHECK(watched.use_count() == 2);
  tg::sum(y).backward();
  CHECK(watched.use_count() == 1);
}

// ---- inputs -------------------------------------------------------------------------------------------------------

TEST_CASE("An input given twice gets both gradients, by += and by destination()") {
  const Parameter w(Array{1.0, 2.0});
  const auto add_twice = [&w](const auto& add) {
    const tg::Tape tape;
    const Tensor x = w * 1.0;  // recorded inputs and parameters have different storage for gradients
    const Tensor doubled = tg::record("twice", x.value() + x.value(), {x, x}, add);
    const Tensor of_parameter = tg::record("twice", w.value() + w.value(), {w, w}, add);
    (doubled + of_parameter).backward(Array{1.0, 10.0});
  };
  const auto in_place = [](tg::Gradient<double> dx, const Array& dy) {
    const auto [data, beta] = dx.destination();
    for (std::size_t i = 0; i < dx.size(); ++i) data[i] = (beta == 0 ? 0 : data[i]) + dy.data()[i];
  };
  add_twice([](const Array& dy, auto& dx) { dx[0] += dy, dx[1] += dy; });
  add_twice([](const Array& dy, auto& dx) { dx[0] += dy * 1.0, dx[1] += Array(dy); });
  add_twice([&](const Array& dy, auto& dx) { in_place(dx[0], dy), in_place(dx[1], dy); });
  check_close(w.grad(), Array{12.0, 120.0}, 0.0);
}

TEST_CASE("Constants need no gradient, and adding to theirs does nothing") {
  const Parameter w(Array{1.0, 2.0});
  const Tensor constant(Array{3.0, 4.0});
  int swept = 0;
  const tg::Tape tape;
  const Tensor y = tg::record("mixed", w.value() * constant.value(), {constant, w, Tensor()},
                              [&swept, constant = constant.shared_value()](const Array& dy, auto& dx) {
                                CHECK_FALSE(dx[0].needs_grad());
                                CHECK(dx[1].needs_grad());
                                CHECK_FALSE(dx[2].needs_grad());  // an undefined tensor, such as an absent bias
                                dx[0] += dy;
                                dx[0] += dy * 2.0;
                                dx[0] += Array{1.0, 2.0, 3.0, 4.0, 5.0};
                                dx[1] += dy * *constant;
                                ++swept;
                              });
  tg::sum(y).backward();
  CHECK(swept == 1);
  check_close(w.grad(), Array{3.0, 4.0}, 0.0);
}

TEST_CASE("An error for an input index out of range names the operation") {
  const Parameter w(Array{1.0, 2.0});
  const tg::Tape tape;
  const Tensor y = tg::record("lonely", Array(w.value()), {w}, [](const Array& dy, auto& dx) { dx[1] += dy; });
  CHECK_THROWS_WITH_AS(tg::sum(y).backward(), Contains("[lonely]"), std::logic_error);
  CHECK_FALSE(w.has_grad());
}

// ---- gradients ----------------------------------------------------------------------------------------------------

TEST_CASE("A gradient of the broadcast shape is summed back to the input's shape") {
  const Array g{{1.0, 2.0, 3.0}, {10.0, 20.0, 30.0}};  // (2, 3)
  check_close(received({2, 3}, g), g, 0.0);
  check_close(received({3}, g), Array{11.0, 22.0, 33.0}, 0.0);
  check_close(received({1, 3}, g), Array{{11.0, 22.0, 33.0}}, 0.0);
  check_close(received({2, 1}, g), Array(xt::sum(g, {1}, xt::keep_dims)), 0.0);
  check_close(received({1, 1}, g), Array(tg::Shape{1, 1}, 66.0), 0.0);
  check_close(received({1}, g), Array{66.0}, 0.0);
  check_close(received({}, g), Array(tg::Shape{}, 66.0), 0.0);
  check_close(received({2, 1, 3}, Array(tg::Shape{4, 2, 5, 3}, 0.5)), Array(tg::Shape{2, 1, 3}, 10.0), 1e-15);
  check_close(received({3}, Array(tg::Shape{0, 3})), Array{0.0, 0.0, 0.0}, 0.0);
}

TEST_CASE("Gradients are accepted as any xtensor expression, and accumulate") {
  const Array g{{1.0, 2.0}, {3.0, 4.0}};
  check_close(received({2, 2}, xt::xarray<double>(g)), g, 0.0);
  check_close(received({2, 2}, xt::xarray<int>(g)), g, 0.0);
  check_close(received({2, 2}, xt::xarray<double, xt::layout_type::column_major>(g)), g, 0.0);

  const Parameter w(Array{{0.0, 0.0}, {0.0, 0.0}});
  const tg::Tape tape;
  const Tensor y = tg::record("lazy", Array(w.value()), {w}, [](const Array& dy, auto& dx) {
    dx[0] += xt::transpose(dy);
    dx[0] += dy * 10.0;
    const Array row = xt::sum(dy, {0}, xt::keep_dims);  // separately: see docs/xtensor.md
    dx[0] += row + xt::zeros<double>({2, 2});
  });
  y.backward(g);
  check_close(w.grad(), Array{{1.0 + 10 + 4, 3.0 + 20 + 6}, {2.0 + 30 + 4, 4.0 + 40 + 6}}, 0.0);
}

TEST_CASE("A gradient of an incompatible shape is refused with both shapes") {
  for (const tg::Shape& wrong : {tg::Shape{2}, tg::Shape{2, 1}, tg::Shape{}, tg::Shape{1, 2}, tg::Shape{3, 2}}) {
    const Parameter w(Array{1.0, 2.0, 3.0});
    const std::string shapes = "shape (3) or one that it broadcasts to, got " + tg::to_string(wrong);
    const tg::Tape tape;
    CHECK_THROWS_WITH_AS(tg::sum(with_gradient(w, Array(wrong, 1.0))).backward(), Contains(shapes.c_str()),
                         std::logic_error);
  }
}

// ---- arguments ----------------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("Arguments print on one line, store copies and skip empty ones", T, float, double) {
  tg::Arguments<T> arguments;
  CHECK(to_string(arguments) == "");
  arguments.add("axis", -1).add("eps", T(1e-5)).add("heads", std::size_t{8}).add("keepdims", true);
  arguments.add("mask", tg::BoolArray(tg::Shape{2, 4}, false))
      .add("reduction", "mean")
      .add("equation", std::string("i"));
  arguments.add("shape", tg::IntList{2, -1}).add("before", tg::Shape{}).add("axes", std::vector<int>{1, 0});
  arguments.add("ids", tg::IntArray(tg::Shape{3}, 0)).add("weight", tg::Array<T>(tg::Shape{}, T(1)));
  CHECK(to_string(arguments) ==
        "axis=-1 eps=1e-05 heads=8 keepdims=true mask=(2, 4) reduction=mean equation=i shape=(2, -1) before=() "
        "axes=(1, 0) ids=(3) weight=()");

  arguments = {};
  arguments.add("min", std::optional<T>()).add("weight", tg::Value<T>());
  CHECK(arguments.arguments().empty());
  tg::Array<T> weight{1, 2};
  arguments.add("max", std::optional<T>(T(0.5))).add("weight", weight);
  weight(0) = 3;
  REQUIRE(arguments.arguments().size() == 2);
  CHECK(std::get<double>(arguments.arguments()[0].value) == 0.5);
  CHECK((*std::get<tg::Value<T>>(arguments.arguments()[1].value))(0) == 1);
  const tg::Value<T> shared = tg::make_value<T>(weight);
  arguments.add("shared", shared);
  CHECK(std::get<tg::Value<T>>(arguments.arguments()[2].value) == shared);
}

TEST_CASE("Intermediates are computed on request") {
  tg::Arguments<double> arguments;
  int calls = 0;
  arguments.add_intermediate("weights", tg::Shape{}, [&] { return tg::Array<double>(tg::Shape{}, ++calls); })
      .add_intermediate(
          "twice", tg::Shape{2},
          [] {
            return tg::Array<double>{1, 2};
          },
          [](const tg::Array<double>& dy) { return tg::Array<double>(2 * dy); });
  CHECK(calls == 0);
  REQUIRE(arguments.intermediates().size() == 2);
  CHECK(arguments.intermediates()[0].value()() == 1);
  CHECK(!arguments.intermediates()[0].gradient);
  CHECK(arguments.intermediates()[1].gradient(tg::Array<double>{1, 3}) == tg::Array<double>{2, 6});
  CHECK(to_string(arguments) == "");
}
