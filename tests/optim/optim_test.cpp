/// Features common to all optimizers: groups, states, and parameter handles.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "every_optimizer.hpp"
#include "in_double.hpp"

using Parameters = tg::Parameters<double>;
using Linear = tg::Linear<double>;

namespace {

void set_gradients(const Parameters& parameters, double number) {
  for (const auto& parameter : parameters) parameter->set_grad(Array(parameter->shape(), number));
}

std::vector<Array> values(const Parameters& parameters) {
  std::vector<Array> all;
  for (const auto& parameter : parameters) all.push_back(parameter->value());
  return all;
}

template <class Optimizer> std::vector<std::string> state_names(const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const auto& [name, state] : optimizer.state()) names.push_back(name);
  return names;
}

using Names = std::vector<std::string>;

/// The options stored in an optimizer's file.
template <class Optimizer> struct Spoiled {
  std::vector<typename Optimizer::Options> groups;
  Parameter parameter{Array{0.0}};
  TAPEGRAD_FIELDS(groups)
};

/// A model and its copy, trained by a separate, undisturbed optimizer: they stay equal to the bit.
template <class Optimizer> class Twins {
 public:
  explicit Twins(Linear& layer)
      : copy_(layer), undisturbed_(tg::parameters(copy_), stateful_options<Optimizer>()), steps_(0) {}

  void check_step(Optimizer& optimizer, Linear& layer) {
    ++steps_;
    set_gradients(tg::parameters(layer), 1.0 / steps_);
    set_gradients(tg::parameters(copy_), 1.0 / steps_);
    optimizer.step();
    undisturbed_.step();
    CHECK(values(tg::parameters(layer)) == values(tg::parameters(copy_)));
  }

 private:
  Linear copy_;
  Optimizer undisturbed_;
  int steps_;
};

}  // namespace

// ---- updated parameters -------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("Parameters without a gradient keep their value and their state", Optimizer, OPTIMIZERS(double)) {
  Parameter seen(Array{1.0, 2.0}), skipped(Array{1.0, 2.0}), alone(Array{1.0, 2.0});
  Optimizer optimizer({skipped, seen}, stateful_options<Optimizer>()),
      undisturbed({alone}, stateful_options<Optimizer>());
  set_gradients({seen, skipped, alone}, 1.0);
  optimizer.step();
  undisturbed.step();

  optimizer.zero_grad();
  CHECK_FALSE(seen.has_grad());
  CHECK_FALSE(skipped.has_grad());
  seen.set_grad(Array{3.0, 3.0});
  optimizer.step();
  CHECK(skipped.value() == alone.value());
  CHECK(seen.value() != alone.value());

  set_gradients({skipped, alone}, -2.0);
  optimizer.step();
  undisturbed.step();
  CHECK(skipped.value() == alone.value());  // its state did not advance either
}

TEST_CASE_TEMPLATE("Steps change parameters, not tensors that share their values", Optimizer, OPTIMIZERS(double)) {
  Linear model(2, 1);
  const Linear copy = model;
  const Array before = model.weight.value();
  const auto held = model.weight.shared_value();
  const Tensor handle = model.weight.detach();
  Optimizer optimizer(tg::parameters(model), stateful_options<Optimizer>());
  const tg::Tape tape;
  const Tensor squares = tg::sum(model.weight * model.weight);
  set_gradients(tg::parameters(model), 1.0);
  optimizer.step();
  CHECK(model.weight.value() != before);
  CHECK(copy.weight.value() == before);
  CHECK(*held == before);
  CHECK(handle.value() == before);
  optimizer.zero_grad();
  squares.backward();  // with the recorded value
  check_close(model.weight.grad(), Array(before * 2.0), 1e-15);
}

TEST_CASE_TEMPLATE("A value or gradient assigned with another shape is refused before anything changes", Optimizer,
                   OPTIMIZERS(double)) {
  Parameter a(Array{1.0, 2.0}), b(Array{1.0, 2.0});
  Optimizer optimizer({a, b}, stateful_options<Optimizer>());
  b.set_name("b");
  set_gradients({a, b}, 1.0);
  SUBCASE("the value") { b.mutable_value() = Array{1.0}; }
  SUBCASE("the gradient") { b.mutable_grad() = Array{1.0}; }
  CHECK_THROWS_WITH_AS(optimizer.step(), Contains("to keep its shape (2), got b (1)"), std::logic_error);
  check_close(a.value(), Array{1.0, 2.0}, 0.0);
}

// ---- learning rates, and any optimizer ----------------------------------------------------------------------------

TEST_CASE_TEMPLATE("A program can choose the optimizer at run time, and change its learning rate between steps",
                   Optimizer, OPTIMIZERS(double)) {
  Parameter p(Array{0.0});
  const std::unique_ptr<tg::Optimizer<double>> optimizer =
      std::make_unique<Optimizer>(Parameters{p}, typename Optimizer::Options{.lr = 0.5, .weight_decay = 0});
  CHECK(optimizer->lr() == 0.5);
  p.set_grad(Array{1.0});  // a gradient of 1 makes all three step by lr
  double expected = 0;
  for (const double lr : {0.5, 0.25, 0.0}) {
    optimizer->set_lr(lr);
    CHECK_THROWS_AS(optimizer->set_lr(-1), std::invalid_argument);
    CHECK(optimizer->lr() == lr);
    optimizer->step();
    expected -= lr;
    CHECK(p.item() == doctest::Approx(expected));
  }
  optimizer->zero_grad();
  CHECK_FALSE(p.has_grad());
}

// ---- groups -------------------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("Each group is updated with its own options", Optimizer, OPTIMIZERS(double)) {
  Parameter a(Array{1.0}), b(Array{2.0}), c(Array{3.0}), a_alone = a, b_alone = b, c_alone = c;
  typename Optimizer::Options other{.lr = 0.7, .weight_decay = 0};
  Optimizer both({a}, stateful_options<Optimizer>());
  both.add_group({b, c}, other);
  Optimizer first({a_alone}, stateful_options<Optimizer>()), second({b_alone, c_alone}, other);
  for (const double g : {1.0, -0.25, 3.0}) {
    set_gradients({a, b, c, a_alone, b_alone, c_alone}, g);
    both.step();
    first.step();
    second.step();
  }
  CHECK(values({a, b, c}) == values({a_alone, b_alone, c_alone}));

  REQUIRE(both.groups().size() == 2);
  CHECK(both.groups()[1].lr == 0.7);
  CHECK(both.groups()[1].weight_decay == 0);
  CHECK(both.lr() == 0.1);
  both.set_lr(0.5);
  CHECK(both.groups()[0].lr == 0.5);
  CHECK(both.groups()[1].lr == 0.5);
  CHECK(both.groups()[0].weight_decay == 0.1);
  both.zero_grad();
  for (const Parameter* p : {&a, &b, &c}) CHECK_FALSE(p->has_grad());
}

TEST_CASE("Parameters are selected by name and shape") {
  struct Net {
    Linear first{2, 3}, head{3, 1};
    TAPEGRAD_FIELDS(first, head)
  } net;
  tg::SGD<double> optimizer(tg::parameters(net, [](std::string_view, const auto& p) { return p.dimension() == 2; }));
  CHECK(state_names(optimizer) == Names{"first.weight", "head.weight"});
  optimizer.add_group(tg::parameters(net, [](std::string_view name, const auto&) { return name == "head.bias"; }), {});
  CHECK(state_names(optimizer) == Names{"first.weight", "head.bias", "head.weight"});
}

TEST_CASE_TEMPLATE("A refused group adds none of its parameters", Optimizer, OPTIMIZERS(double)) {
  Parameter a(Array{1.0}), b(Array{2.0}), undefined;
  a.set_name("a");
  Parameter alone = a;
  Optimizer optimizer({a}, stateful_options<Optimizer>()), undisturbed({alone}, stateful_options<Optimizer>());
  const auto check_refused = [&](const Parameters& parameters, const typename Optimizer::Options& options,
                                 const char* words) {
    CHECK_THROWS_WITH_AS(optimizer.add_group(parameters, options), Contains(words), std::invalid_argument);
    CHECK(optimizer.groups().size() == 1);
    CHECK(state_names(optimizer) == Names{"a"});
    set_gradients({a, b, alone}, 1.0);
    optimizer.step();
    undisturbed.step();
    CHECK(a.value() == alone.value());
    CHECK(b.item() == 2.0);
    CHECK(optimizer.lr() == 0.1);
  };
  check_refused({b, undefined}, {}, "] expected parameters with a value, got an undefined one at index 1");
  check_refused({b, b}, {}, "] expected each parameter once, got (1) twice, at indices 0 and 1");
  check_refused({b, a}, {}, "] expected each parameter once, got a (1) twice, at indices 0 and 2");
  check_refused({b}, {.lr = -1}, "] expected a finite lr of 0 or more, got -1");
  check_refused({b}, {.weight_decay = -1}, "] expected a finite weight_decay of 0 or more, got -1");

  optimizer.add_group({b}, stateful_options<Optimizer>(0.5));
  b.set_grad(Array{1.0});
  optimizer.step();
  CHECK(b.item() < 2.0);
  CHECK(state_names(optimizer) == Names{"1", "a"});
  CHECK_THROWS_WITH_AS(optimizer.add_group({b}, {}), Contains("at indices 1 and 2"), std::invalid_argument);
}

TEST_CASE_TEMPLATE("Loaded options are checked before a step changes anything", Optimizer, OPTIMIZERS(double)) {
  Parameter a(Array{1.0}), b(Array{2.0});
  Optimizer optimizer({a}, stateful_options<Optimizer>());
  optimizer.add_group({b}, stateful_options<Optimizer>());
  set_gradients({a, b}, 1.0);
  const auto check_refused = [&](const std::string& words) {
    const std::vector<std::byte> before = tg::save_bytes(optimizer);
    CHECK_THROWS_WITH_AS(optimizer.step(), Contains(words.c_str()), std::invalid_argument);
    CHECK(tg::save_bytes(optimizer) == before);
    CHECK(values({a, b}) == std::vector<Array>{Array{1.0}, Array{2.0}});
  };
  Spoiled<Optimizer> file{optimizer.groups()};
  file.groups[1].lr = std::nan("");
  tg::load(optimizer, std::span<const std::byte>(tg::save_bytes(file)), {.allow_missing = {"state.*"}});
  check_refused("] expected a finite lr of 0 or more, got nan");
  if constexpr (requires { file.groups[0].betas; }) {
    file.groups[0].betas[1] = 1;
    tg::load(optimizer, std::span<const std::byte>(tg::save_bytes(file)), {.allow_missing = {"state.*"}});
    check_refused("] expected betas in [0, 1), got 0.9 and 1");
  }
}

TEST_CASE_TEMPLATE("The parameters are accessible in order, each with its state", Optimizer, OPTIMIZERS(double)) {
  Parameter a(Array{1.0}), b(Array{2.0, 3.0}), late(Array{4.0}), other(Array{5.0});
  a.set_name("z");
  b.set_name("b");
  late.set_name("late");
  Optimizer optimizer({a, b}, stateful_options<Optimizer>());
  optimizer.add_group({late}, stateful_options<Optimizer>());
  CHECK(optimizer.parameters() == Parameters{a, b, late});
  CHECK(&optimizer.state(a) == &optimizer.state().at("z"));
  CHECK(&optimizer.state(b) == &optimizer.state().at("b"));
  CHECK(&optimizer.state(late) == &optimizer.state().at("late"));
  const Parameter moved = std::move(b);
  CHECK(&optimizer.state(moved) == &optimizer.state().at("b"));
  other.set_name("z");
  CHECK_THROWS_WITH_AS(optimizer.state(other), Contains("] expected one of the optimizer's parameters, got z (1)"),
                       std::invalid_argument);
  const Parameter copy = a;
  CHECK_THROWS_AS(optimizer.state(copy), std::invalid_argument);
}

// ---- the names of states ------------------------------------------------------------------------------------------

TEST_CASE("States are named by the parameters, or by numbers for missing and duplicate names") {
  Parameter named(Array{1.0}), twin(Array{2.0}), nameless(Array{3.0}), number(Array{4.0}), late(Array{5.0});
  named.set_name("w");
  twin.set_name("w");
  number.set_name("2");
  tg::AdamW<double> optimizer({named, twin, nameless, number});
  CHECK(state_names(optimizer) == Names{"1", "2", "3", "w"});
  late.set_name("w");
  optimizer.add_group({late}, {});
  CHECK(state_names(optimizer) == Names{"1", "2", "3", "4", "w"});
  set_gradients({named, twin, nameless, number, late}, 1.0);
  optimizer.step();
  for (const auto& [name, state] : optimizer.state()) CHECK(state.step == 1);
}

// ---- parameters and optimizers that move --------------------------------------------------------------------------

TEST_CASE_TEMPLATE("An optimizer follows its parameters when their model moves, and names of states persist", Optimizer,
                   OPTIMIZERS(double)) {
  struct Larger {
    Linear first{2, 2}, layer{2, 2};
    TAPEGRAD_FIELDS(first, layer)
  } larger;
  std::vector<Linear> layers;
  layers.emplace_back(2, 2);
  Optimizer optimizer(tg::parameters(layers[0]), stateful_options<Optimizer>());
  Twins<Optimizer> twins(layers[0]);
  twins.check_step(optimizer, layers[0]);
  for (int i = 0; i < 10; ++i) layers.emplace_back(2, 2);
  twins.check_step(optimizer, layers[0]);

  Linear moved = std::move(layers[0]);
  twins.check_step(optimizer, moved);
  larger.layer = std::move(moved);
  CHECK(tg::named_parameters(larger).back().second->name() == "layer.bias");
  CHECK(tg::parameters(larger).size() == 4);
  twins.check_step(optimizer, larger.layer);
  CHECK(state_names(optimizer) == Names{"bias", "weight"});
  Linear assigned = std::move(larger.layer);
  twins.check_step(optimizer, assigned);

  const auto train = [&] {
    const Array before = assigned.weight.value();
    set_gradients(tg::parameters(assigned), 1.0);
    optimizer.step();
    CHECK(assigned.weight.value() != before);
  };
  const Linear other(2, 2);
  assigned = other;
  CHECK(assigned.weight.value() == other.weight.value());
  train();
  assigned = Linear(2, 2);  // the only owner: its numbers are moved
  train();
  CHECK(assigned.weight.name() == "weight");
  CHECK(state_names(optimizer) == Names{"bias", "weight"});
}

template <class Optimizer> constexpr bool moves_and_is_not_copied() {
  return std::is_nothrow_move_constructible_v<Optimizer> && std::is_nothrow_move_assignable_v<Optimizer> &&
         !std::is_copy_constructible_v<Optimizer> && !std::is_copy_assignable_v<Optimizer> &&
         std::has_virtual_destructor_v<Optimizer>;
}

TEST_CASE_TEMPLATE("A moved optimizer continues, and copying does not compile", Optimizer, OPTIMIZERS(double)) {
  static_assert(moves_and_is_not_copied<Optimizer>());
  Linear layer(2, 2), other(2, 2);
  Optimizer optimizer(tg::parameters(layer), stateful_options<Optimizer>());
  Twins<Optimizer> twins(layer);
  twins.check_step(optimizer, layer);

  Optimizer constructed = std::move(optimizer);
  twins.check_step(constructed, layer);

  Optimizer assigned(tg::parameters(other), stateful_options<Optimizer>(0.7));
  set_gradients(tg::parameters(other), 1.0);
  assigned.step();
  assigned = std::move(constructed);
  const std::vector<Array> left = values(tg::parameters(other));
  twins.check_step(assigned, layer);
  CHECK(values(tg::parameters(other)) == left);  // parameters of its previous state
  struct Run {
    Linear model;
    Optimizer optimizer;
    TAPEGRAD_FIELDS(model, optimizer)
  };
  Run run{std::move(layer), std::move(assigned)};
  twins.check_step(run.optimizer, run.model);
  Run moved = std::move(run);
  twins.check_step(moved.optimizer, moved.model);
}

TEST_CASE_TEMPLATE("An optimizer whose model was destroyed reports it before anything changes", Optimizer,
                   OPTIMIZERS(double)) {
  Parameter a(Array{1.0}), b(Array{1.0});
  Optimizer optimizer({a, b}, stateful_options<Optimizer>());
  b.set_name("head.bias");
  set_gradients({a, b}, 1.0);
  SUBCASE("model assigned another") { b = Parameter(Array{1.0, 2.0}); }
  SUBCASE("model destroyed") { const Parameter ends = std::move(b); }
  SUBCASE("parameter undefined") { b = Parameter(); }
  CHECK_THROWS_WITH_AS(optimizer.step(),
                       Contains("] expected parameters of an existing model, got head.bias (1), whose model was "
                                "destroyed or assigned to; create a new optimizer"),
                       std::logic_error);
  CHECK(a.item() == 1.0);
  if constexpr (requires { optimizer.state().at("0").step; }) CHECK(optimizer.state().at("0").step == 0);
  CHECK_NOTHROW(optimizer.zero_grad());
  CHECK_FALSE(a.has_grad());
}

template <class X>
concept MutableValueOf = requires {
  std::declval<X>().mutable_value();
};

TEST_CASE_TEMPLATE("Accessors of a temporary optimizer or state return no dangling references", Optimizer,
                   OPTIMIZERS(double)) {
  static_assert(!std::is_reference_v<decltype(std::declval<Optimizer>().groups())>);
  static_assert(!std::is_reference_v<decltype(std::declval<Optimizer>().state())>);
  static_assert(!std::is_reference_v<decltype(std::declval<tg::StateArray<double>>().shape())>);
  static_assert(!std::is_reference_v<decltype(std::declval<tg::StateArray<double>>().value())>);
  static_assert(std::is_reference_v<decltype(std::declval<const Optimizer&>().groups())>);
  static_assert(std::is_reference_v<decltype(std::declval<const Optimizer&>().state())>);
  static_assert(!requires(Optimizer && temporary, const Parameter& p) { std::move(temporary).state(p); });
  static_assert(!MutableValueOf<tg::StateArray<double>> && MutableValueOf<tg::StateArray<double>&>);

  Parameter parameter(Array{1.0, 2.0});
  for (const auto& group : Optimizer({parameter}, stateful_options<Optimizer>()).groups()) CHECK(group.lr == 0.1);
  tg::StateArray<double> state({2});
  CHECK_THROWS_AS(tg::StateArray<double>(state).value(), std::bad_optional_access);
  state.set_value({3.0, 4.0});
  const Array& value = std::move(state).value();
  CHECK(value == Array{3.0, 4.0});
}

TEST_CASE_TEMPLATE("Parameters without elements or axes are updated like others", Optimizer, OPTIMIZERS(double)) {
  Parameter empty(Array(tg::Shape{0, 3})), number = scalar(1);
  Optimizer optimizer({empty, number}, stateful_options<Optimizer>());
  set_gradients({empty, number}, 1.0);
  optimizer.step();
  CHECK(number.item() < 1);
  CHECK(empty.size() == 0);
}

TEST_CASE_TEMPLATE("Steps change the value in place, and allocate only the state, once", Optimizer, OPTIMIZERS(float)) {
  constexpr bool has_state = !std::is_same_v<typename Optimizer::Options, tg::SGDOptions>;  // SGD without momentum
  tg::Parameter<float> p(tg::Array<float>(tg::Shape{1000}, 1.0f));
  p.set_grad(p.value());
  Optimizer optimizer({p});
  const float* const numbers = p.value().data();
  const std::ptrdiff_t blocks = tg::pool_blocks_in_use();
  for (int step = 0; step < 2; ++step) {
    optimizer.step();
    CHECK(p.value().data() == numbers);
    CHECK(tg::pool_blocks_in_use() == blocks + (has_state ? 2 : 0));
  }
}
