// The handle of a registered hook: it removes this hook only, in any state of the tensor, tape and other hooks.
#include <memory>
#include <optional>

#include "in_double.hpp"

namespace {

/// Tensors with hooks: a parameter and a recorded tensor.
struct Places {
  Parameter parameter{Array{1.0, 2.0}};
  tg::Tape tape;
  Tensor recorded = parameter * 3.0;

  template <class Body> void for_each(const Body& body) {
    body(static_cast<Tensor&>(parameter));
    body(recorded);
  }
  void sweep() { tg::sum(recorded * 1.0).backward(tg::retain_graph); }
};

}  // namespace

TEST_CASE("A handle removes its hook and no other") {
  Places places;
  places.for_each([&](Tensor& x) {
    std::vector<int> called;
    std::vector<tg::HookHandle> hooks;
    for (int i = 0; i < 3; ++i) hooks.push_back(x.register_hook([&called, i](Array&) { called.push_back(i); }));
    hooks[1].remove();
    places.sweep();
    CHECK(called == std::vector<int>{0, 2});
    hooks[1].remove();  // a second time
    hooks[2].remove();
    places.sweep();
    CHECK(called == std::vector<int>{0, 2, 0});
    hooks[0].remove();
    places.sweep();
    CHECK(called.size() == 3);
    x.register_hook([&](Array&) { called.push_back(7); });
    for (tg::HookHandle& hook : hooks) hook.remove();
    places.sweep();
    CHECK(called.back() == 7);
    if (&x == &places.recorded) return;
    places.parameter.remove_hooks();  // the hooks refer to local variables
  });
}

TEST_CASE("A removed hook is destroyed with its captures; a handle's end does not remove its hook") {
  Places places;
  places.for_each([&](Tensor& x) {
    const auto called = std::make_shared<int>(0);
    tg::HookHandle hook = x.register_hook([called](Array&) {});
    CHECK(called.use_count() == 2);
    hook.remove();
    CHECK(called.use_count() == 1);
    (void)x.register_hook([called](Array&) { ++*called; });
    places.sweep();
    CHECK(*called == 1);
  });
  const auto held = std::make_shared<int>(1);
  tg::HookHandle hook = places.parameter.register_hook([held](Array&) {});
  places.parameter.remove_hooks();
  CHECK(held.use_count() == 1);
  hook.remove();
}

TEST_CASE("A hook may remove itself and others during a call, and the calls of this backward pass finish") {
  Places places;
  places.for_each([&](Tensor& x) {
    const auto called = std::make_shared<std::vector<int>>();
    const auto hooks = std::make_shared<std::vector<tg::HookHandle>>(2);
    (*hooks)[0] = x.register_hook([called, hooks, held = std::make_shared<int>(5)](Array&) {
      for (tg::HookHandle& hook : *hooks) hook.remove();
      called->push_back(*held);
    });
    (*hooks)[1] = x.register_hook([called](Array&) { called->push_back(1); });
    places.sweep();
    CHECK(*called == std::vector<int>{5, 1});
    places.sweep();
    CHECK(called->size() == 2);
    hooks->clear();
  });
}

TEST_CASE("A hook that destroys its own handle finishes its call") {
  Places places;
  int called = 0;
  auto hook = std::make_shared<tg::HookHandle>();
  *hook = places.parameter.register_hook([&](Array& gradient) {
    hook->remove();
    hook.reset();
    gradient *= 2.0;
    ++called;
  });
  places.sweep();
  places.sweep();
  CHECK(called == 1);
  check_close(places.parameter.grad(), Array{6.0 + 3.0, 6.0 + 3.0}, 0.0);
}

TEST_CASE("A handle may outlive the parameter, tensor and tape") {
  std::vector<tg::HookHandle> hooks;
  {
    Places places;
    places.for_each([&](Tensor& x) { hooks.push_back(x.register_hook([](Array&) {})); });
  }
  for (tg::HookHandle& hook : hooks) CHECK_NOTHROW(hook.remove());

  std::optional<tg::Tape> tape(std::in_place);
  const Parameter p(Array{1.0});
  Tensor y = p * 2.0;
  tg::HookHandle hook = y.register_hook([](Array&) {});
  tape.reset();
  const tg::Tape other;
  Tensor z = p * 2.0;  // same node index on another tape
  int called = 0;
  z.register_hook([&](Array&) { ++called; });
  hook.remove();
  z.backward();
  CHECK(called == 1);
}

TEST_CASE("A handle follows the parameter's storage, not copies of its value") {
  Parameter p(Array{1.0});
  int called = 0;
  tg::HookHandle hook = p.register_hook([&](Array&) { ++called; });
  Parameter moved = std::move(p);
  const auto sweep = [](const Parameter& parameter) {
    const tg::Tape tape;
    (parameter * 2.0).backward();
  };
  sweep(moved);
  CHECK(called == 1);
  const Parameter copy = moved;
  sweep(copy);
  CHECK(called == 1);
  hook.remove();
  sweep(moved);
  CHECK(called == 1);
}

TEST_CASE("An empty handle removes nothing, and moved or copied handles remove their own hook") {
  tg::HookHandle none;
  CHECK_NOTHROW(none.remove());
  Places places;
  int called = 0;
  tg::HookHandle hook = places.parameter.register_hook([&](Array&) { ++called; });
  tg::HookHandle copy = hook;
  tg::HookHandle moved = std::move(hook);
  moved.remove();
  copy.remove();
  places.sweep();
  CHECK(called == 0);
}
