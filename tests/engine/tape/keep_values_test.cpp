// Values stored by a tape for inspection: Tape({.keep_values = true}).
#include <tapegrad/inspect/internal/node_view.hpp>

#include <limits>
#include <memory>
#include <optional>

#include "in_double.hpp"

namespace {

using Kept = tg::detail::KeptValues<double>::Entry;

// The stored values of each node of type double.
std::vector<Kept> kept_by(const tg::Tape& tape) {
  std::vector<Kept> kept;
  tg::detail::for_each_node(*tape.recording(), [&]<class T>(const tg::detail::NodeView<T>& node) {
    if constexpr (std::same_as<T, double>)
      if (node.kept != nullptr) kept.push_back(*node.kept);
  });
  return kept;
}

constexpr tg::TapeOptions keeping{.keep_values = true};

struct KeptModel {
  tg::Linear<double> hidden{3, 4}, head{4, 2};
  TAPEGRAD_FIELDS(hidden, head)
};

}  // namespace

TEST_CASE("With keep_values a tape keeps values, inputs and gradients, also after the backward pass") {
  KeptModel model;
  const Tensor x(Array{{1, 2, 3}, {4, 5, 6}});
  tg::Tape tape(keeping);
  Tensor h = model.hidden(x), a = tg::tanh(h), y = model.head(a);
  for (Tensor* tensor : {&h, &a, &y}) tensor->retain_grad();
  tg::sum(y * y).backward();

  const std::vector<Kept> kept = kept_by(tape);  // hidden's weight and bias, h, a, head's weight and bias, y, y y, sum
  REQUIRE(kept.size() == 9);
  const Parameter* parameters[] = {&model.hidden.weight, &model.hidden.bias, &model.head.weight, &model.head.bias};
  const std::size_t of_parameters[] = {0, 1, 4, 5};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(kept[of_parameters[i]].value == parameters[i]->shared_value());
    CHECK(*kept[of_parameters[i]].gradient == parameters[i]->grad());
    CHECK(kept[of_parameters[i]].reached);
  }
  const Tensor* tensors[] = {&h, &a, &y};
  const std::size_t of_tensors[] = {2, 3, 6};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(kept[of_tensors[i]].value == tensors[i]->shared_value());  // shared, not copied
    CHECK(*kept[of_tensors[i]].gradient == tensors[i]->grad());
  }
  REQUIRE(kept[2].constants.size() == 3);
  CHECK(kept[2].constants[0].value == x.shared_value());
  CHECK_FALSE(kept[2].constants[1].value);  // a node
  CHECK((*kept[8].gradient)() == 1);
  CHECK(tg::detail::observers_of(tape.recording()->of<double>())->kept_values()->start() == 8);
}

TEST_CASE("The contribution of each rule to an input's gradient is kept, also of an input read twice") {
  const Parameter w(Array{1, 2});
  tg::Tape tape(keeping);
  const Tensor y = w * w, z = y + w * 3.0;  // nodes: w, y, 3 w, z
  z.backward(Array{10, 100});
  const std::vector<Kept> kept = kept_by(tape);
  REQUIRE(kept[1].contributions.size() == 2);
  CHECK(*kept[1].contributions[0] == Array{10, 200});
  CHECK(*kept[1].contributions[1] == Array{10, 200});
  CHECK(*kept[2].contributions[0] == Array{30, 300});
  CHECK(*kept[0].gradient == Array{50, 700});
  CHECK(w.grad() == Array{50, 700});
  CHECK(kept[0].contributions.empty());
}

TEST_CASE("keep_values does not change gradients") {
  const auto gradients = [](const tg::TapeOptions& options) {
    tg::manual_seed(3);
    tg::TransformerBlock<double> block(8, 2);
    tg::Embedding<double> embedding(7, 8);
    const tg::Tape tape(options);
    const Tensor x = embedding({{0, 1, 2, 6}, {1, 1, 1, 0}});
    tg::sum(tg::pow(block(block(x, tg::AttentionMask::causal())), 2)).backward();
    std::vector<Array> result{embedding.weight.grad()};
    for (const auto& parameter : tg::parameters(block)) result.push_back(parameter->grad());
    return result;
  };
  const std::vector<Array> kept = gradients(keeping), plain = gradients({});
  REQUIRE(kept.size() == plain.size());
  for (std::size_t i = 0; i < kept.size(); ++i) check_close(kept[i], plain[i], 1e-12);
}

TEST_CASE("With keep_values, values and gradients have the lifetime of the tape; without, nothing is kept") {
  const Parameter w(Array{1, 2});
  for (const bool keeps : {false, true}) {
    CAPTURE(keeps);
    std::weak_ptr<const tg::Array<double>> value, gradient;
    {
      tg::Tape tape({.keep_values = keeps});
      {
        const Tensor y = w + 1.0;
        value = y.shared_value();
        tg::sum(y).backward(tg::retain_graph);
      }
      CHECK(value.expired() == !keeps);
      CHECK(kept_by(tape).empty() == !keeps);
      CHECK((tape.recording()->of<double>().observer() == nullptr) == !keeps);
      if (keeps) gradient = kept_by(tape)[1].gradient;
      CHECK(gradient.expired() == !keeps);
    }
    CHECK(value.expired());
    CHECK(gradient.expired());
  }
}

TEST_CASE("Kept values do not change later: by steps, other backward passes or hooks") {
  Parameter w(Array{1, 2});
  tg::Tape tape(keeping);
  Tensor y = w * 2.0;
  y.retain_grad();
  y.register_hook([](auto& gradient) { gradient *= 10.0; });
  w.register_hook([](auto& gradient) { gradient += 1.0; });
  const Tensor loss = tg::sum(y);
  loss.backward();
  const std::vector<Kept> kept = kept_by(tape);
  {
    const tg::Tape another;
    tg::sum(w * 5.0).backward();  // adds to w's gradient in place
  }
  w.mutable_grad() += 1000.0;
  w.mutable_value() += 1000.0;
  CHECK(*kept[0].value == Array{1, 2});
  CHECK(*kept[0].gradient == Array{21, 21});
  CHECK(*kept[1].contributions[0] == Array{20, 20});  // before w's hook
  CHECK(*kept[1].gradient == Array{10, 10});
  CHECK(*kept[2].contributions[0] == Array{1, 1});  // before y's hook
  CHECK(y.grad() == Array{10, 10});
}

TEST_CASE("After several backward passes the last one's gradients are kept, and accumulated gradients of parameters") {
  const Parameter w(Array{1, 2});
  tg::Tape tape(keeping);
  const Tensor y = w * 2.0, z = w * 3.0;  // nodes: w, y, z
  y.backward(Array{1, 1}, tg::retain_graph);
  z.backward(Array{1, 1}, tg::retain_graph);
  const std::vector<Kept> kept = kept_by(tape);
  CHECK(*kept[0].gradient == Array{3, 3});
  CHECK_FALSE(kept[1].reached);
  CHECK_FALSE(kept[1].gradient);
  CHECK(kept[1].contributions.empty());
  CHECK(kept[2].reached);
  CHECK(tg::detail::observers_of(tape.recording()->of<double>())->kept_values()->start() == 2);
  CHECK(w.grad() == Array{5, 5});
}

TEST_CASE("Frozen parameters are kept as named constants, and undefined inputs as nothing") {
  tg::Linear<double> layer(2, 2, {.bias = false});
  tg::parameters(layer);
  layer.weight.set_requires_grad(false);
  const Parameter x(Array{1, 2});
  tg::Tape tape(keeping);
  layer(x).backward(Array{1, 1});
  const std::vector<Kept> kept = kept_by(tape);
  REQUIRE(kept.size() == 2);
  REQUIRE(kept[1].constants.size() == 3);
  CHECK(kept[1].constants[1].value == layer.weight.shared_value());
  CHECK(kept[1].constants[1].name == "weight");
  CHECK_FALSE(kept[1].constants[2].value);
  CHECK_FALSE(kept[1].contributions[1]);
}

TEST_CASE("NaN is kept, and a failed backward pass keeps the gradients up to its failure") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Parameter w(Array{nan, 4});
  tg::Tape tape(keeping);
  const Tensor y = tg::record("failing", Array(w.value()), {w},
                              [](const Array&, auto&) { throw std::runtime_error("as it should"); });
  const Tensor z = y * 2.0;
  CHECK_THROWS_AS(z.backward(Array{1, nan}), std::runtime_error);
  const std::vector<Kept> kept = kept_by(tape);
  CHECK(std::isnan((*kept[2].value)(0)));
  CHECK(std::isnan((*kept[1].gradient)(1)));
  CHECK((*kept[1].gradient)(0) == 2);
  CHECK(kept[1].contributions.empty());
  CHECK_FALSE(kept[0].reached);
  CHECK_FALSE(w.has_grad());
}

TEST_CASE("A user-defined operation has its formula and is kept like the library's") {
  const Parameter w(Array{2.0});
  tg::Tape tape(keeping);
  const Tensor y = tg::record({"scaled cube", "y = c x³; dx = 3 c x² ⊙ dy", 2}, 2 * w.value() * w.value() * w.value(),
                              {w}, [x = w.shared_value()](const Array& dy, auto& dx) { dx[0] += 6.0 * *x * *x * dy; });
  y.backward();
  const std::vector<Kept> kept = kept_by(tape);
  CHECK((*kept[1].value)(0) == 16);
  CHECK((*kept[1].contributions[0])(0) == 24);
  tg::detail::for_each_node(*tape.recording(), [](const auto& node) {
    if (!node.is_parameter) CHECK(std::string(node.operation.formula) == "y = c x³; dx = 3 c x² ⊙ dy");
  });
}

TEST_CASE("Nested tapes keep their own values, also inside the outer tape's backward pass") {
  const Parameter w(Array{1, 2}), v(Array{3, 4});
  tg::Tape outer(keeping);
  std::optional<std::size_t> of_inner;
  Tensor y = w * 2.0;
  y.register_hook([&](auto&) {
    const tg::Tape inner(keeping);
    tg::sum(v * v).backward();
    of_inner = kept_by(inner).size();
  });
  tg::sum(y).backward();
  CHECK(of_inner == 3);
  CHECK(kept_by(outer).size() == 3);
  CHECK(w.grad() == Array{2, 2});
  CHECK(v.grad() == Array{6, 8});
}

TEST_CASE("Rules that record on their own tape, and errors of shapes, behave as without keep_values") {
  const Parameter w(Array{1, 2});
  tg::Tape tape(keeping);
  const Tensor y = tg::record("recomputing", Array(w.value()), {w, w}, [&](const Array& dy, auto& dx) {
    for (int i = 0; i < 100; ++i) (void)tg::exp(w);  // makes the tape grow
    dx[0] += dy;
    dx[1] += dy * 2.0;
  });
  tg::sum(y).backward();
  CHECK(w.grad() == Array{3, 3});
}

TEST_CASE("A backward pass in one number type discards the gradients kept by one in the other") {
  const Parameter w(Array{1, 2});
  const tg::Parameter<float> v(tg::Array<float>{3});
  tg::Tape tape(keeping);
  const Tensor y = tg::sum(w * w);
  y.backward();
  tg::sum(v * v).backward();
  CHECK(tg::detail::observers_of(tape.recording()->of<double>())->kept_values()->start() == -1);
  CHECK(tg::detail::observers_of(tape.recording()->of<float>())->kept_values()->start() == 2);
  for (const Kept& kept : kept_by(tape)) CHECK_FALSE(kept.gradient);
  CHECK(w.grad() == Array{2, 4});
}
