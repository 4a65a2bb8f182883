#include <memory>
#include <optional>
#include <thread>

#include "in_double.hpp"
#include "text.hpp"

// ---- recording ----------------------------------------------------------------------------------------------------

TEST_CASE("A tape has one node per parameter, however often it is read, and none for constants") {
  const Parameter w = scalar(2.0);
  const Tensor constant(Array{1.0, 2.0});
  const tg::Tape tape;
  CHECK(tape.size() == 0);
  CHECK_FALSE((constant * constant).requires_grad());
  CHECK(tape.size() == 0);
  const Tensor y = w * w * constant;
  CHECK(y.requires_grad());
  CHECK(tape.size() == 3);  // w and two products
}

TEST_CASE("Without a tape operations compute values and record nothing") {
  const Parameter w = scalar(3.0);
  const Tensor y = w * w;
  CHECK(y.item() == 9.0);
  CHECK(w.requires_grad());
  CHECK_FALSE(y.requires_grad());
  CHECK_THROWS_WITH_AS(y.backward(), Contains("create a Tape before computing"), std::logic_error);
  CHECK_FALSE(w.has_grad());
}

TEST_CASE("A tape records float and double operations together") {
  const Parameter d = scalar(3.0);
  const tg::Parameter<float> f(tg::Array<float>{2.0F, 4.0F});
  const tg::Tape tape;
  const auto yf = tg::sum(f * f);
  const auto yd = d * d;
  const auto zf = yf + 1.0F;
  CHECK(tape.size() == 6);
  yd.backward();
  CHECK(d.grad()() == 6.0);
  CHECK_FALSE(f.has_grad());
  zf.backward();
  check_close(f.grad(), Array{4.0, 8.0}, 0.0);
  CHECK(d.grad()() == 6.0);
}

// ---- several tapes ------------------------------------------------------------------------------------------------

TEST_CASE("A tensor of an outer tape is refused on the inner one, with a remedy") {
  const Parameter w = scalar(3.0);
  const tg::Tape outer;
  const Tensor y = w * w;
  {
    const tg::Tape inner;
    CHECK_THROWS_WITH_AS(
        y * 2.0, Contains("[mul] expected inputs recorded on this Tape, got one recorded on an outer Tape; detach()"),
        std::logic_error);
    (y.detach() * w).backward();
    CHECK(w.grad()() == 9.0);
    y.backward();  // backward on the outer recording is not an operation on the inner tape
    CHECK(w.grad()() == 9.0 + 6.0);
  }
}

TEST_CASE("Tapes on the heap may end in any order") {
  const Parameter w = scalar(3.0);
  const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    std::optional<tg::Tape> tapes[3];
    std::vector<Tensor> made;
    for (auto& tape : tapes) {
      tape.emplace();
      made.push_back(w * w);
    }
    bool alive[3] = {true, true, true};
    for (const int ends : order) {
      tapes[ends].reset();
      alive[ends] = false;
      const int innermost = alive[2] ? 2 : alive[1] ? 1 : alive[0] ? 0 : -1;
      CHECK(tg::Tape::records() == (innermost >= 0));
      const auto size_of = [&](int i) { return i < 0 ? 0 : tapes[i]->size(); };
      const std::size_t before = size_of(innermost);
      (void)(w * w);
      CHECK(size_of(innermost) == before + (innermost < 0 ? 0 : 1));
      for (int i = 0; i < 3; ++i) {
        if (alive[i])
          CHECK_NOTHROW(made[i].backward(tg::retain_graph));
        else
          CHECK_THROWS_AS(made[i].backward(), std::logic_error);
      }
    }
  }
}

TEST_CASE("A tensor of another thread's tape is refused, but its value is readable") {
  const Parameter w = scalar(2.0);
  const tg::Tape tape;
  const Tensor y = w * w;
  std::string as_input, as_start;
  double value = 0;
  std::thread([&] {
    const tg::Tape own;
    value = y.item();
    as_input = thrown_by([&] { y * 2.0; });
    as_start = thrown_by([&] { y.backward(); });
  }).join();
  CHECK(value == 4.0);
  CHECK(as_input.starts_with("[mul] expected "));
  CHECK(as_start.starts_with("[backward] expected "));
  CHECK_FALSE(w.has_grad());
}

// ---- tensors that outlive their tape ------------------------------------------------------------------------------

TEST_CASE("A tensor that outlives its tape keeps its value and is stale: refused until detach makes it a constant") {
  const Parameter w = scalar(3.0);
  Tensor y;
  {
    const tg::Tape tape;
    y = w * w;
  }
  CHECK((y * 2.0).item() == 18.0);  // without a tape, only values matter
  CHECK_THROWS_WITH_AS(y.backward(), Contains("stale"), std::logic_error);
  const tg::Tape tape;
  CHECK_THROWS_WITH_AS(y.backward(), Contains("stale"), std::logic_error);
  for (const char* told : {"[mul]", "stale", "detach()"}) CHECK_THROWS_WITH_AS(w * y, Contains(told), std::logic_error);
  CHECK_FALSE(w.has_grad());
  (w * y.detach()).backward();
  CHECK(w.grad()() == 9.0);
}

TEST_CASE("Tape numbers are never reused, so stale tensors stay stale") {
  const Parameter w = scalar(3.0);
  std::vector<Tensor> made;
  for (int i = 0; i < 100; ++i) {
    const auto tape = std::make_unique<tg::Tape>();  // likely at the same address each time
    for (const Tensor& stale : made) CHECK_THROWS_AS(stale.backward(), std::logic_error);
    made.push_back(w * w);
  }
}

TEST_CASE("recompute refuses a stale tensor, even the first one of its tape and for a function that ignores it") {
  const Parameter w = scalar(3.0);
  const tg::Tape tape;
  Tensor stale;
  tg::recompute([&](const Tensor& x) { return (stale = x) * 2.0; }, w * 2.0);
  CHECK_THROWS_AS(tg::recompute([](const Tensor&) { return Tensor(1.0); }, stale), std::logic_error);
}
