// Moved-from objects of all public classes are empty: their members may be called, and they can be assigned to again.
// Copies do the same as their originals, on any thread. every_layer_test.cpp moves and copies layers.
#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "temporary_folder.hpp"
#include "text.hpp"

namespace tg = tapegrad;

namespace {

using Matrix = tg::Array<float>;
using Cache = tg::KeyValueCache<>;

// Moves an object by construction and by assignment. Each time the source must be empty, and the target must do what
// the object did. Then the source takes the object back.
template <class C, class Empty, class Does> void check_moves(C object, Empty is_empty, Does result) {
  const auto expected = result(object);
  if constexpr (std::is_copy_constructible_v<C>) {
    C copy(object);
    std::thread([&] { CHECK(result(copy) == expected); }).join();
    if constexpr (std::is_invocable_v<Does&, const C&>) CHECK(result(std::as_const(copy)) == expected);
  }
  C constructed(std::move(object));
  CHECK(is_empty(object));
  CHECK(result(constructed) == expected);
  if constexpr (std::is_move_assignable_v<C>) {
    object = std::move(constructed);
    CHECK(is_empty(constructed));
    CHECK(result(object) == expected);
  }
}

tg::Tensor<float> rows(std::size_t count, float first) {
  Matrix array(tg::Shape{1, count, 4});
  for (float& x : array) x = first += 0.25F;
  return array;
}

template <class Optimizer> void check_moved_optimizer() {
  tg::Parameter<float> w(Matrix(tg::Shape{2, 2}, 1.0F));
  w.set_grad(Matrix(tg::Shape{2, 2}, 1.0F));
  const auto is_empty = [](Optimizer& optimizer) {
    optimizer.step();
    optimizer.zero_grad();
    optimizer.set_lr(1);
    CHECK_THROWS_AS(optimizer.lr(), std::logic_error);
    return optimizer.parameters().empty() && optimizer.groups().empty() && optimizer.state().empty();
  };
  check_moves(Optimizer({&w}, {.lr = 0.5}), is_empty, [](Optimizer& optimizer) { return optimizer.lr(); });
  CHECK(w.has_grad());
  CHECK(w.value()(0, 0) == 1);
}

}  // namespace

TEST_CASE("moved-from tensors and parameters are undefined") {
  const auto is_undefined = [](const auto& x) {
    CHECK_THROWS_AS(x.value(), std::logic_error);
    if constexpr (requires { x.retain_grad(); }) CHECK_THROWS_AS(x.retain_grad(), std::logic_error);
    CHECK_FALSE(x.has_grad());
    return !x.defined() && !x.requires_grad();
  };
  const auto sum = [](const auto& x) { return tg::sum(x).item(); };
  const tg::Parameter<float> w(Matrix(tg::Shape{2, 3}, 1.0F));
  const tg::Tape tape;
  for (const auto& x : {w * 2.0F, tg::Tensor<float>(w.value())}) check_moves(x, is_undefined, sum);
  check_moves(w, is_undefined, sum);
}

TEST_CASE("moved-from masks are empty") {
  const auto text = [](const auto& x) { return to_string(x); };
  const auto is_no_mask = [](const tg::AttentionMask& mask) { return to_string(mask) == "none"; };
  check_moves(tg::AttentionMask::causal(), is_no_mask, text);
  check_moves(tg::AttentionMask::causal() & tg::AttentionMask::valid_lens(tg::int_array({1, 2})), is_no_mask, text);
}

TEST_CASE("a moved-from handle of a hook removes nothing") {
  tg::Parameter<float> w(Matrix(tg::Shape{2}, 1.0F));
  int calls = 0;
  const auto called = [&](const tg::HookHandle&) {
    const int before = calls;
    const tg::Tape tape;
    tg::sum(w).backward();
    return calls - before;
  };
  check_moves(
      w.register_hook([&](Matrix&) { ++calls; }), [&](tg::HookHandle& moved) { return moved.remove(), called(moved); },
      called);
}

TEST_CASE("a moved-from view of a parameter stays, and a moved-from page has no steps") {
  tg::Parameter<float> w(Matrix(tg::Shape{2, 2}, 1.0F));
  w.set_name("w");
  const tg::Tape tape({.keep_values = true});
  tg::sum(w * w).backward();
  const auto value = [](const tg::Recorded<float>& view) { return view.value(); };
  check_moves(
      tape.find<float>("w"), [&](const auto& moved) { return value(moved) == w.value(); }, value);

  const TemporaryFolder folder;
  const auto saved = [&](const tg::Page& page) { return page.save(folder / "page"), folder.read("page"); };
  const auto has_no_steps = [&](const tg::Page& moved) {
    CHECK_THROWS_AS(saved(moved), std::logic_error);
    return true;
  };
  tg::Page page;
  page.add(tape);
  check_moves(std::move(page), has_no_steps, saved);
}

TEST_CASE("a moved-from cache of keys and values is empty, and starts another text") {
  const auto attend = [](Cache cache) { return cache.attend(rows(1, 7), rows(1, 8), rows(1, 9), 2).value(); };
  Cache cache;
  cache.attend(rows(3, 0), rows(3, 1), rows(3, 2), 2);
  const Matrix of_first_token = attend(Cache());
  check_moves(
      cache, [&](Cache& moved) { return moved.size() == 0 && attend(moved) == of_first_token; }, attend);
}

TEST_CASE("a moved-from cache of a decoder is empty") {
  const tg::TransformerDecoderBlock<float> block(4, 2);
  const auto decode = [&](tg::DecoderCache<float> cache) { return block(rows(1, 7), cache).value(); };
  tg::DecoderCache<float> cache(block, rows(3, 0));
  (void)block(rows(1, 1), cache);
  const auto is_empty = [&](tg::DecoderCache<float>& moved) {
    CHECK_THROWS_AS(decode(moved), std::logic_error);
    return moved.size() == 0;
  };
  check_moves(cache, is_empty, decode);
}

TEST_CASE("a moved-from optimizer has no parameters") {
  check_moved_optimizer<tg::SGD<float>>();
  check_moved_optimizer<tg::Adam<float>>();
  check_moved_optimizer<tg::AdamW<float>>();
  check_moved_optimizer<tg::Muon<float>>();
}

TEST_CASE("a moved-from array of an optimizer's state has no value") {
  tg::StateArray<float> state(tg::Shape{2});
  state.mutable_value().fill(3.0F);
  check_moves(
      std::move(state), [](const tg::StateArray<float>& moved) { return !moved.has_value(); },
      [](const tg::StateArray<float>& object) { return object.value(); });
}

TEST_CASE("a moved-from array of a file is refused") {
  const std::vector<std::byte> bytes = tg::save_bytes(tg::Linear<>(2, 3));
  auto arrays = tg::read_safetensors(bytes);
  REQUIRE(arrays.contains("weight"));
  check_moves(
      std::move(arrays.at("weight")),
      [](const tg::StoredArray& moved) {
        CHECK_THROWS_AS(moved.as<float>(), std::logic_error);
        return true;
      },
      [](const tg::StoredArray& array) { return array.as<float>(); });
}

TEST_CASE("a moved-from comparison has no steps") {
  tg::testing::Comparison steps;
  steps.add("right", Matrix(tg::Shape{2}, 1.0F), Matrix(tg::Shape{2}, 1.0F));
  steps.add("wrong", Matrix(tg::Shape{2}, 1.0F), Matrix(tg::Shape{2}, 2.0F));
  steps.add("later", Matrix(tg::Shape{2}, 1.0F), Matrix(tg::Shape{2}, 1.0F));
  const std::string none = printed(tg::testing::Comparison());
  check_moves(
      std::move(steps), [&](const tg::testing::Comparison& moved) { return moved && printed(moved) == none; },
      [](const tg::testing::Comparison& object) { return printed(object); });
}
