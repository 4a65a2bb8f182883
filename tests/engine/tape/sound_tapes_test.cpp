// Misuse of tapes: nested backward passes; hooks and rules that record, throw, or destroy the tape; pauses; frozen
// parameters.
#include <tapegrad/testing.hpp>

#include <new>
#include <optional>
#include <thread>

#include "in_double.hpp"
#include "text.hpp"

namespace {

// y = x with a rule that first calls `before`.
template <class Before> Tensor through(const Tensor& x, Before before) {
  return tg::record("through", Array(x.value()), {x}, [before](const Array& dy, auto& dx) {
    before();
    dx[0] += dy;
  });
}

struct Two {
  Parameter a{Array{1.0, 2.0}}, b{Array{3.0, 4.0}};
  TAPEGRAD_FIELDS(a, b)
};

}  // namespace

// ---- all gradients or none ----------------------------------------------------------------------------------------

TEST_CASE("If a rule, a hook or an allocation fails during a backward pass, gradients and counts are unchanged") {
  Two model;
  model.a.set_grad(Array{7.0, 8.0});
  const auto fails_with = [&](auto breaks) {
    const tg::Tape tape;
    Tensor kept = model.b * 2.0;
    kept.retain_grad();
    // The backward pass reaches model.b first and the failing operation last.
    const Tensor loss = tg::sum(breaks(model.a * 1.0)) + tg::sum(kept * kept);
    CHECK_THROWS(loss.backward());
    check_close(model.a.grad(), Array{7.0, 8.0}, 0.0);
    CHECK_FALSE(model.b.has_grad());
    CHECK_FALSE(kept.has_grad());
    CHECK(model.a.sweeps().total == 0);
    CHECK(model.b.sweeps().total == 0);
  };
  fails_with([](const Tensor& x) { return through(x, [] { throw std::runtime_error("a rule that breaks"); }); });
  fails_with([](const Tensor& x) { return through(x, [] { throw std::bad_alloc(); }); });
  fails_with([](Tensor x) {
    x.register_hook([](Array&) { throw std::runtime_error("a hook that breaks"); });
    return x;
  });
  fails_with([](Tensor x) {
    x.register_hook([](Array& gradient) { gradient = Array{1.0}; });
    return x;
  });
  model.a.register_hook([](Array&) { throw std::runtime_error("a parameter's hook that breaks"); });
  fails_with([](const Tensor& x) { return x; });
}

TEST_CASE("Gradients that reached a parameter in a failed backward pass are not delivered by the next one") {
  Two model;
  const tg::Tape tape;
  const Tensor whole = tg::sum(model.a * 3.0);
  const Tensor broken = through(model.a, [] { throw std::runtime_error("breaks"); });
  const Tensor later = tg::sum(model.b * 2.0);  // model.b is recorded last: its gradient arrives first
  CHECK_THROWS((tg::sum(broken) + later).backward(tg::retain_graph));
  whole.backward();
  tg::sum(model.a * 3.0).backward();
  check_close(model.a.grad(), Array{6.0, 6.0}, 0.0);
  CHECK_FALSE(model.b.has_grad());
  CHECK(model.b.sweeps().total == 0);
}

// ---- nested backward passes ---------------------------------------------------------------------------------------

TEST_CASE("A nested backward pass on the same tape is refused, in both number types, and the outer one continues") {
  Two model;
  tg::Parameter<float> in_float(tg::Array<float>{1.0F});
  const tg::Tape tape;
  const Tensor other = tg::sum(model.a);
  const tg::Tensor<float> other_in_float = tg::sum(in_float * 2.0F);
  int refused = 0;
  const auto sweep_others = [&] {
    for (const auto& error : {thrown_by([&] { other.backward(); }), thrown_by([&] { other_in_float.backward(); })}) {
      CHECK(error.starts_with("[backward] expected a call outside the Tape's own backward pass, got one within it"));
      ++refused;
    }
  };
  Tensor y = through(model.a * model.b, sweep_others);
  y.register_hook([&](Array&) { sweep_others(); });
  tg::sum(y * y).backward();
  CHECK(refused == 4);
  check_close(model.a.grad(), Array{18.0, 64.0}, 0.0);
  check_close(model.b.grad(), Array{6.0, 32.0}, 0.0);
  CHECK_FALSE(in_float.has_grad());
  other_in_float.backward();  // it was not consumed
  CHECK(in_float.grad()(0) == 2.0F);
}

TEST_CASE("Hooks and rules may record during a backward pass, and differentiate on their own tape") {
  Two model;
  std::vector<double> inner;
  const auto record_much = [&] {
    for (int i = 0; i < 1000; ++i) (void)(model.a * 2.0 + model.b);
    Two copy = model;
    const tg::Tape own;
    tg::pow(copy.a * 2.0, 3.0).backward(Array{1.0, 10.0});
    inner.push_back(copy.a.grad()(1));
  };
  const tg::Tape tape;
  Tensor y = through(model.a * model.b, record_much);
  y.register_hook([&](Array&) { record_much(); });
  tg::sum(y).backward();
  CHECK(inner == std::vector<double>{960, 960});
  check_close(model.a.grad(), Array{3.0, 4.0}, 0.0);
  check_close(model.b.grad(), Array{1.0, 2.0}, 0.0);
  CHECK(tg::Tape::records());
}

TEST_CASE("A rule may read a gradient, record, and then add to it") {
  Two model;
  const tg::Tape tape;
  const Tensor y = tg::record("late", Array(model.a.value()), {model.a}, [&](const Array& dy, auto& dx) {
    auto g = dx[0];
    for (int i = 0; i < 1000; ++i) (void)(model.b * 2.0);
    g += dy * 5.0;
    CHECK(g.size() == 2);
  });
  tg::sum(y).backward();
  check_close(model.a.grad(), Array{5.0, 5.0}, 0.0);
}

TEST_CASE("If a hook or a rule ends the tape, its backward pass finishes") {
  for (const bool in_hook : {true, false}) {
    Two model;
    std::optional<tg::Tape> tape(std::in_place);
    const auto end = [&] { tape.reset(); };
    Tensor y = model.a * model.b;
    if (in_hook)
      y.register_hook([&](Array&) { end(); });
    else
      y = through(y, end);
    const Tensor loss = tg::sum(y);
    loss.backward();
    CHECK_FALSE(tape.has_value());
    check_close(model.a.grad(), Array{3.0, 4.0}, 0.0);
    CHECK_THROWS_WITH_AS(loss.backward(), Contains("stale"), std::logic_error);
  }
}

TEST_CASE("A hook may remove its tensor's hooks and add others, which run from the next backward pass on") {
  Two model;
  std::vector<int> called;
  model.a.register_hook([&](Array&) {
    called.push_back(1);
    model.a.remove_hooks();
    for (int i = 0; i < 100; ++i) model.a.register_hook([&](Array&) { called.push_back(3); });
  });
  model.a.register_hook([&](Array&) { called.push_back(2); });
  const tg::Tape tape;
  Tensor y = model.a * 2.0;
  y.register_hook([&](Array&) {
    called.push_back(0);
    for (int i = 0; i < 100; ++i) y.register_hook([&](Array&) { called.push_back(4); });
  });
  const Tensor loss = tg::sum(y);
  loss.backward(tg::retain_graph);
  CHECK(called == std::vector<int>{0, 1, 2});
  called.clear();
  loss.backward();
  CHECK(called.size() == 1 + 100 + 100);
}

TEST_CASE("A hook keeps its state between backward passes, on parameters and other tensors") {
  Two model;
  int last = 0, last_of_output = 0;
  model.a.register_hook([&last, called = 0](Array&) mutable { last = ++called; });
  const tg::Tape tape;
  Tensor y = model.a * 2.0;
  y.register_hook([&last_of_output, called = 0](Array&) mutable { last_of_output = ++called; });
  const Tensor loss = tg::sum(y);
  for (int sweep = 0; sweep < 3; ++sweep) loss.backward(tg::retain_graph);
  CHECK(last == 3);
  CHECK(last_of_output == 3);
}

// ---- pauses -------------------------------------------------------------------------------------------------------

TEST_CASE("NoGrad pauses recording in its scope, pauses nest, and a tape in a pause records") {
  Two model;
  const tg::Tape tape;
  {
    const tg::NoGrad pause;
    CHECK_FALSE(tg::Tape::records());
    const Tensor y = model.a * model.b;
    CHECK_FALSE(y.requires_grad());
    CHECK(tape.size() == 0);
    {
      const tg::NoGrad again;
      const tg::Tape inner;
      CHECK(tg::Tape::records());
      tg::sum(model.a * y).backward();
    }
    check_close(model.a.grad(), Array{3.0, 8.0}, 0.0);
    CHECK_FALSE(tg::Tape::records());
  }
  CHECK(tg::Tape::records());
  CHECK((model.a * model.b).requires_grad());
}

TEST_CASE("A backward pass may run in a pause") {
  Two model;
  const tg::Tape tape;
  const Tensor loss = tg::sum(model.a * model.a);
  const tg::NoGrad pause;
  loss.backward();
  check_close(model.a.grad(), Array{2.0, 4.0}, 0.0);
}

// ---- frozen parameters --------------------------------------------------------------------------------------------

TEST_CASE("A frozen parameter is a constant to operations, has no overhead, and can be unfrozen") {
  Two model;
  model.a.set_grad(Array{1.0, 1.0});
  model.a.set_requires_grad(false);
  CHECK_FALSE(model.a.requires_grad());
  CHECK_FALSE(model.a.has_grad());
  {
    const tg::Tape tape;
    const Tensor y = tg::record("looks", Array(model.a.value()), {model.a, model.b}, [](const Array& dy, auto& dx) {
      CHECK_FALSE(dx[0].needs_grad());
      dx[0] += dy;
      dx[1] += dy;
    });
    tg::sum(y).backward();
    CHECK_FALSE((model.a * 2.0).requires_grad());
    CHECK(tape.size() == 3);
  }
  CHECK_FALSE(model.a.has_grad());
  CHECK(model.b.has_grad());
  Two copy = model;
  CHECK_FALSE(copy.a.requires_grad());
  CHECK(copy.b.requires_grad());

  const tg::Tape tape;
  model.a.set_requires_grad(true);
  const Tensor loss = tg::sum(model.a * model.b);
  model.b.set_requires_grad(false);  // after it was recorded
  loss.backward();
  check_close(model.a.grad(), Array{3.0, 4.0}, 0.0);
  CHECK_FALSE(model.b.has_grad());
  Parameter undefined;
  CHECK_THROWS_AS(undefined.set_requires_grad(false), std::logic_error);
}

// ---- parameters and their storage ---------------------------------------------------------------------------------

TEST_CASE("Assigning to a parameter through a Tensor is refused and changes nothing") {
  Parameter p(Array{1.0, 2.0});
  p.set_name("head.bias");
  Tensor& as_tensor = p;
  const Tensor other(Array{5.0});
  CHECK_THROWS_WITH_AS(as_tensor = other,
                       Contains("[Parameter] expected set_value(), got an assignment to head.bias (2)"),
                       std::logic_error);
  CHECK_THROWS_AS(as_tensor = Tensor(Array{5.0}), std::logic_error);
  CHECK_THROWS_AS(as_tensor += other, std::logic_error);
  CHECK_THROWS_AS(as_tensor /= 2, std::logic_error);
  p.set_grad(Array{1.0, 1.0});
  check_close(p.value(), Array{1.0, 2.0}, 0.0);

  Tensor handle = p;  // not a parameter; it keeps the current value
  p.set_value(Array{3.0, 4.0});
  check_close(handle.value(), Array{1.0, 2.0}, 0.0);
  CHECK(handle.requires_grad());
  handle = other;
  check_close(handle.value(), Array{5.0}, 0.0);
  Tensor taken = std::move(as_tensor);
  check_close(taken.value(), Array{3.0, 4.0}, 0.0);
  CHECK(p.defined());
}

TEST_CASE("Parameters with a single owner keep gradients, hooks and counts when a vector moves them") {
  std::vector<Two> layers(2);
  int called = 0;
  layers[1].a.register_hook([&](Array&) { ++called; });
  const auto sweep = [&](const Parameter& p) {
    const tg::Tape tape;
    tg::sum(p * 5.0).backward();
  };
  sweep(layers[1].a);
  layers.erase(layers.begin());
  check_close(layers[0].a.grad(), Array{5.0, 5.0}, 0.0);
  CHECK(layers[0].a.sweeps().total == 1);
  sweep(layers[0].a);
  CHECK(called == 2);
}

TEST_CASE("Copies of a model keep the names in reports") {
  Two model;
  tg::parameters(model);
  const Two copy = model;
  CHECK(copy.a.name() == "a");
}

TEST_CASE("A parameter without a gradient shows zeros at one address, from several threads at once") {
  std::optional<Parameter> p;  // created and destroyed on other threads, because each thread counts its pool blocks
  std::jthread([&] { p.emplace(Array(tg::Shape{64, 64}, 1.0)); }).join();
  std::vector<const Array*> seen(4);
  {
    std::vector<std::jthread> threads;
    for (auto& address : seen) threads.emplace_back([&] { address = &std::as_const(*p).grad(); });
  }
  for (const Array* address : seen) CHECK(address == &p->grad());
  CHECK(p->grad()(63, 63) == 0.0);
  std::jthread([&] { p.reset(); }).join();
}

// ---- saved arrays -------------------------------------------------------------------------------------------------

TEST_CASE("The bytes saved by a rule are counted for any kind of capture") {
  const Parameter w(Array{1.0, 2.0, 3.0});  // 24 bytes
  const auto saved_by = [&](auto rule) {
    const tg::Tape tape({.profile = true});
    (void)tg::record("saving", Array(w.value()), {w}, rule);
    const std::string table = printed(tape);
    const std::size_t row = table.find("saving");
    return table.substr(row, table.find('\n', row) - row);
  };
  const auto x = w.shared_value();
  const auto adds = [](const Array& dy, auto& dx) { dx[0] += dy; };
  CHECK_FALSE(contains(saved_by([adds](const Array& dy, auto& dx) { adds(dy, dx); }), " B "));
  CHECK(contains(saved_by([x, adds](const Array& dy, auto& dx) { adds(dy, dx); }), " 24 B "));
  CHECK(contains(saved_by([copied = Array(w.value()), adds](const Array& dy, auto& dx) { adds(dy, dx); }), " 24 B "));
  const std::vector<tg::Value<double>> both{x, x};
  CHECK(contains(saved_by([both, adds](const Array& dy, auto& dx) { adds(dy, dx); }), " 48 B "));
}
