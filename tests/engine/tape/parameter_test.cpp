#include <functional>
#include <type_traits>

#include "in_double.hpp"

// Vectors of layers move their parameters when they grow.
static_assert(std::is_nothrow_move_constructible_v<Parameter> && std::is_nothrow_move_assignable_v<Parameter>);

// ---- gradients ----------------------------------------------------------------------------------------------------

TEST_CASE("A gradient reads as zeros until it is set or a backward pass reaches it, and again after zero_grad") {
  Parameter w(Array{1.0, 2.0});
  CHECK(w.requires_grad());
  for (const Array& start : {Array{0.0, 0.0}, Array{10.0, 20.0}}) {
    CHECK_FALSE(w.has_grad());
    check_close(w.grad(), Array{0.0, 0.0}, 0.0);
    if (start(0) > 0) {
      w.set_grad(start);
      CHECK(w.has_grad());
    }
    const tg::Tape tape;
    tg::sum(w * 3.0).backward();
    CHECK(w.has_grad());
    check_close(w.grad(), Array(start + 3.0), 0.0);
    w.zero_grad();
    w.zero_grad();  // a second call changes nothing
  }
  CHECK_FALSE(w.has_grad());
  check_close(w.grad(), Array{0.0, 0.0}, 0.0);
}

TEST_CASE("Setting a value or gradient of another shape throws with both shapes and changes nothing") {
  Parameter w(Array{1.0, 2.0});
  w.set_grad(Array{3.0, 4.0});
  CHECK_THROWS_WITH_AS(w.set_value(Array{1.0, 2.0, 3.0}), Contains("(2), got (3)"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(w.set_grad(Array{{1.0, 2.0}}), Contains("(2), got (1, 2)"), std::invalid_argument);
  check_close(w.value(), Array{1.0, 2.0}, 0.0);
  check_close(w.grad(), Array{3.0, 4.0}, 0.0);
}

TEST_CASE("A frozen parameter gets no gradient") {
  Parameter w(Array{1.0, 2.0});
  w.set_name("w");
  w.set_requires_grad(false);
  CHECK_THROWS_WITH_AS(w.set_grad(Array{3.0, 4.0}),
                       "[set_grad] expected a parameter that requires a gradient, got w (2), which is frozen; "
                       "call set_requires_grad(true)",
                       std::logic_error);
  CHECK_FALSE(w.has_grad());
}

TEST_CASE("A default-constructed parameter is undefined: reading, setting and backward throw") {
  Parameter none;
  CHECK_FALSE(none.defined());
  CHECK_FALSE(none.requires_grad());
  CHECK_FALSE(none.has_grad());
  none.zero_grad();
  CHECK_THROWS_AS(none.value(), std::logic_error);
  CHECK_THROWS_AS(none.grad(), std::logic_error);
  CHECK_THROWS_AS(none.set_value(Array{1.0}), std::logic_error);
  CHECK_THROWS_AS(none.set_grad(Array{1.0}), std::logic_error);
  CHECK_THROWS_AS(none.mutable_value(), std::logic_error);

  const Parameter copy = none;
  CHECK_FALSE(copy.defined());
  Parameter w(Array{1.0});
  w.set_grad(Array{3.0});
  w = none;
  CHECK_FALSE(w.defined());
  CHECK_FALSE(w.has_grad());
  CHECK_FALSE(w.requires_grad());
  w = Parameter(Array{2.0});
  CHECK(w.item() == 2.0);
  none = w;
  CHECK(none.item() == 2.0);
  CHECK(none.requires_grad());
}

// ---- copies -------------------------------------------------------------------------------------------------------

TEST_CASE("A copy is a separate parameter with the same value and no gradient") {
  Parameter w(Array{1.0, 2.0});
  w.set_grad(Array{5.0, 5.0});
  Parameter copy = w;
  CHECK_FALSE(copy.has_grad());
  check_close(copy.value(), Array{1.0, 2.0}, 0.0);
  copy.mutable_value()(0) = 7.0;
  w.mutable_value()(1) = 9.0;
  check_close(copy.value(), Array{7.0, 2.0}, 0.0);
  check_close(w.value(), Array{1.0, 9.0}, 0.0);

  const tg::Tape tape;
  tg::sum(copy * 2.0).backward();
  check_close(copy.grad(), Array{2.0, 2.0}, 0.0);
  check_close(w.grad(), Array{5.0, 5.0}, 0.0);
}

TEST_CASE("Copies share the memory of their value until one of them changes") {
  Parameter w(Array{1.0, 2.0});
  const Parameter copy = w;
  CHECK(&copy.value() == &w.value());
  const Array* shared = &copy.value();
  w.mutable_value()(0) = 3.0;
  CHECK(&copy.value() == shared);
  CHECK(&w.value() != shared);
  const Array* own = &w.value();
  w.mutable_value()(0) = 4.0;  // not shared, so not copied
  CHECK(&w.value() == own);
}

TEST_CASE("Assigning a parameter to itself by copy or move changes nothing") {
  Parameter w(Array{1.0, 2.0});
  w.set_grad(Array{5.0, 6.0});
  Parameter& same = w;
  w = same;
  check_close(w.value(), Array{1.0, 2.0}, 0.0);
  check_close(w.grad(), Array{5.0, 6.0}, 0.0);
  w = std::move(same);
  check_close(w.value(), Array{1.0, 2.0}, 0.0);
  check_close(w.grad(), Array{5.0, 6.0}, 0.0);
  const tg::ParameterHandle handle(w);
  *handle = w;
  check_close(w.grad(), Array{5.0, 6.0}, 0.0);
}

TEST_CASE("Assigning a parameter copies its frozen state, and keeps the name of the target") {
  const auto made = [](const char* name, bool requires_grad) {
    Parameter p(Array{3.0, 4.0});
    p.set_name(name);
    p.set_requires_grad(requires_grad);
    return p;
  };
  for (const bool other : {false, true}) {
    const Parameter source = made("source", other);
    Parameter copied = made("place", !other), unnamed = made("", !other);
    copied = source;
    CHECK(copied.requires_grad() == other);
    CHECK(copied.name() == "place");
    unnamed = source;
    CHECK(unnamed.name() == "source");
    Parameter alone = made("place", !other), held = made("place", !other);
    const tg::ParameterHandle holder(held);  // like an optimizer's: moves only the value
    for (Parameter* moved : {&alone, &held}) {
      *moved = made("", other);
      CHECK(moved->requires_grad() == other);
      CHECK(moved->name() == "place");
      *moved = made("source", other);
      CHECK(moved->name() == "source");
    }
    CHECK(holder == tg::ParameterHandle(held));
  }
}

TEST_CASE("A parameter assigned by move has no gradient") {
  Parameter alone(Array{1.0, 2.0}), held(Array{1.0, 2.0});
  const tg::ParameterHandle holder(held);  // like an optimizer's: moves only the value
  for (Parameter* w : {&alone, &held}) {
    w->set_grad(Array{5.0, 6.0});
    {
      const tg::Tape tape;
      tg::sum(*w * 2.0).backward();
    }
    *w = Parameter(Array{3.0, 4.0});
    check_close(w->value(), Array{3.0, 4.0}, 0.0);
    CHECK_FALSE(w->has_grad());
    CHECK(w->sweeps().total == 0);
  }
}

// ---- arrays of another shape ----------------------------------------------------------------------------------------

TEST_CASE("A parameter assigned a value of another shape is refused until its shape is restored") {
  Parameter w(Array{{1.0, 2.0}, {3.0, 4.0}});
  w.set_name("head.weight");
  w.mutable_value() = Array{{1.0, 2.0}};
  const tg::Tape tape;
  CHECK_THROWS_WITH_AS(tg::matmul(w, w), Contains("[matmul]"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::sum(w),
                       "[sum] expected a parameter to keep its shape (2, 2), got head.weight (1, 2); "
                       "change its elements, not its shape",
                       std::logic_error);
  CHECK(tape.size() == 0);
  CHECK_THROWS_WITH_AS(w.set_value(Array{{1.0, 2.0}}), Contains("shape (2, 2), got (1, 2)"), std::invalid_argument);
  w.set_value(Array{{1.0, 2.0}, {3.0, 4.0}});
  tg::sum(w * 2.0).backward();
  check_close(w.grad(), Array{{2.0, 2.0}, {2.0, 2.0}}, 0.0);
}

TEST_CASE("A backward pass that meets a gradient of another shape changes no gradient") {
  Parameter a(Array{1.0, 2.0}), b(Array{1.0, 2.0}), c(Array{1.0, 2.0});
  b.set_grad(Array{5.0, 6.0});
  b.set_name("b");
  b.mutable_grad() = Array{5.0};
  const tg::Tape tape;
  const Tensor loss = tg::sum(a * b * c);
  CHECK_THROWS_WITH_AS(
      loss.backward(),
      "[backward] expected a gradient to keep its shape (2), got b (1); change its elements, not its shape",
      std::logic_error);
  CHECK_FALSE(a.has_grad());
  CHECK_FALSE(c.has_grad());
  CHECK(a.sweeps().total + c.sweeps().total == 0);
}

// ---- changed while recorded ---------------------------------------------------------------------------------------

TEST_CASE("After any change of a parameter, backward uses the recorded value, and new operations the new one") {
  const Parameter other(Array{10.0, 20.0});
  std::vector<Parameter> copies;
  struct Change {
    const char* name;
    std::function<void(Parameter&)> apply;
    Array value;  // after it
  };
  const Array ten{10.0, 20.0};
  const Change changes[]{
      {"in place", [](Parameter& w) { w.mutable_value() *= 100.0; }, {100.0, 200.0}},
      {"set_value", [&](Parameter& w) { w.set_value(ten); }, ten},
      {"a step",
       [&](Parameter& w) {
         tg::SGD<double> sgd({w}, {.lr = 0.5});
         w.set_grad(0.2 * ten);
         sgd.step();
         sgd.zero_grad();
       },
       {0.0, 0.0}},
      {"copied", [&](Parameter& w) { copies.push_back(std::as_const(w)); }, {1.0, 2.0}},
      {"assigned a copy, with a gradient", [&](Parameter& w) { w.set_grad(ten), w = other; }, ten},
      // The only owner of its storage, so w keeps its own.
      {"assigned by move", [&](Parameter& w) { w = Parameter(3.0 * ten); }, 3.0 * ten},
  };
  for (const Change& change : changes) {
    CAPTURE(change.name);
    Parameter w(Array{1.0, 2.0});
    const tg::Tape tape;
    const Tensor before = tg::sum(w * w);
    change.apply(w);
    CHECK_FALSE(w.has_grad());
    before.backward(tg::retain_graph);
    check_close(w.grad(), Array{2.0, 4.0}, 0.0);
    check_close(w.value(), change.value, 0.0);
    (before + tg::sum(w * w)).backward();
    check_close(w.grad(), Array(Array{4.0, 8.0} + 2.0 * change.value), 0.0);
  }
  CHECK_FALSE(copies[0].has_grad());
  CHECK_FALSE(other.has_grad());
}

TEST_CASE("After moving a recorded parameter and a tensor computed from it, the new parameter gets the gradient") {
  Parameter w(Array{1.0, 2.0});
  const tg::Tape tape;
  Tensor square = w * w, moved_square = std::move(square);
  const Parameter moved = std::move(w);
  tg::sum(moved_square).backward();
  check_close(moved.grad(), Array{2.0, 4.0}, 0.0);
}

TEST_CASE("A recorded parameter assigned one of another shape is a new parameter to the tape") {
  Parameter w(Array{1.0, 2.0});
  const tg::Tape tape;
  const Tensor loss = tg::sum(w * w);
  w = static_cast<const Parameter&>(Parameter(Array{3.0, 4.0, 5.0}));
  loss.backward();
  CHECK_FALSE(w.has_grad());
  tg::sum(w * w).backward();
  check_close(w.grad(), Array{6.0, 8.0, 10.0}, 0.0);
}

TEST_CASE("A parameter assigned by move while recorded does not get the gradient of its old storage") {
  Parameter w(Array{1.0, 2.0}), other(Array{3.0, 4.0});
  const tg::ParameterHandle held(other);
  const tg::Tape tape;
  const Tensor loss = tg::sum(w * w);
  w = std::move(other);
  loss.backward();
  CHECK_FALSE(w.has_grad());
  CHECK(held == tg::ParameterHandle(w));
  CHECK_FALSE(held.is_orphaned());
  check_close(w.value(), Array{3.0, 4.0}, 0.0);
}

TEST_CASE("Destroying a recorded parameter does not disturb the backward pass") {
  const Parameter w(Array{1.0, 2.0});
  Tensor loss;
  const tg::Tape tape;
  {
    const Parameter brief(Array{3.0, 4.0});
    loss = tg::sum(w * brief);
  }
  for (int i = 0; i < 100; ++i) {  // new parameters may reuse its address, but the tape tells them apart
    const Parameter another(Array{0.0, 0.0});
    loss = loss + tg::sum(w * another);
  }
  loss.backward();
  check_close(w.grad(), Array{3.0, 4.0}, 0.0);
}

TEST_CASE("Two parameters that share a value are two nodes on the tape") {
  const Parameter a(Array{1.0, 2.0});
  const Parameter b = a;
  const tg::Tape tape;
  tg::sum(a * b * b).backward();
  CHECK(tape.size() == 5);
  check_close(a.grad(), Array{1.0, 4.0}, 0.0);
  check_close(b.grad(), Array{2.0, 8.0}, 0.0);
}

TEST_CASE("Changing a parameter does not change a tensor that shares its value") {
  const Tensor made = tg::transpose(Tensor(Array{{1.0, 2.0}, {3.0, 4.0}}), 0, 1);
  Parameter w(Array{{0.0, 0.0}, {0.0, 0.0}});
  w.share_value(made.shared_value());
  CHECK(&w.value() == &made.value());
  w.mutable_value()(0, 0) = 5.0;
  check_close(w.value(), Array{{5.0, 3.0}, {2.0, 4.0}}, 0.0);
  check_close(made.value(), Array{{1.0, 3.0}, {2.0, 4.0}}, 0.0);
  CHECK_THROWS_AS(w.share_value(tg::sum(made).shared_value()), std::invalid_argument);
}
