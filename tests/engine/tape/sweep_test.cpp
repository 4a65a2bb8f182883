#include "in_double.hpp"
#include "sanitized.hpp"

namespace {

// The sum of scalars; its rule appends its name to `calls`.
Tensor noted_sum(const char* name, std::initializer_list<tg::Input<double>> inputs, std::vector<std::string>& calls) {
  Array sum(tg::Shape{}, 0.0);
  for (const auto& input : inputs) sum += input.tensor->value();
  return tg::record(name, std::move(sum), inputs, [name, &calls](const Array& dy, auto& dx) {
    calls.emplace_back(name);
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += dy;
  });
}

// Returns x; its rule throws this many times.
Tensor failing(const Tensor& x, int& failures) {
  return tg::record("failing", Array(x.value()), {x}, [&failures](const Array& dy, auto& dx) {
    if (failures-- > 0) throw std::runtime_error("the rule fails");
    dx[0] += dy;
  });
}

}  // namespace

// ---- sweeping -----------------------------------------------------------------------------------------------------

TEST_CASE("A value used many times accumulates the gradients of all its uses") {
  const Parameter w = scalar(2.0);
  const tg::Tape tape;
  const Tensor y = w * w;                    // 4, y' = 2 w
  const Tensor z = y * y + y + y - w / 4.0;  // z' = (2 y + 2) y' - 1/4
  z.backward();
  CHECK(w.grad()() == 10.0 * 4.0 - 0.25);
}

TEST_CASE("Rules are called once each in reverse order, and those of unused branches never") {
  const Parameter w = scalar(1.0);
  std::vector<std::string> calls;
  const tg::Tape tape;
  const Tensor trunk = noted_sum("trunk", {w}, calls);
  const Tensor left = noted_sum("left", {trunk}, calls);
  const Tensor unused = noted_sum("unused", {trunk, left}, calls);
  const Tensor right = noted_sum("right", {trunk, trunk}, calls);
  const Tensor loss = noted_sum("loss", {right, left, w}, calls);
  const Tensor later = noted_sum("later", {loss, unused}, calls);
  loss.backward();
  CHECK(calls == std::vector<std::string>{"loss", "right", "left", "trunk"});
  CHECK(w.grad()() == 4.0);
}

TEST_CASE("A chain of 200,000 operations is recorded, differentiated and destroyed") {
  constexpr int kLength = 200'000;  // a recursive function would need more than the stack's 8 MB
  const Parameter w = scalar(1.0);
  for (const bool swept : {true, false}) {
    const tg::Tape tape;
    Tensor y = w * 1.0;
    for (int i = 1; i < kLength; ++i) y = y * w;
    CHECK(tape.size() == kLength + 1);
    if (swept) y.backward();
  }
  CHECK(w.grad()() == kLength);  // d w^n / dw = n at 1
}

TEST_CASE("A backward pass frees the values saved by each operation; retain_graph keeps them") {
  constexpr std::size_t kDepth = 20;
  std::vector<std::ptrdiff_t> in_use;  // blocks in use at each call of a rule
  const Parameter w(Array{1.0, 2.0});
  const tg::Tape tape;
  Tensor y = w * 1.0;
  for (std::size_t i = 0; i < kDepth; ++i)
    y = tg::record("watched", y.value() * 1.0, {y}, [&in_use, saved = y.shared_value()](const Array& dy, auto& dx) {
      in_use.push_back(tg::pool_blocks_in_use());
      dx[0] += dy;
    });
  const Tensor loss = tg::sum(y);
  y = Tensor();  // only the recording holds the values

  loss.backward(tg::retain_graph);
  REQUIRE(in_use.size() == kDepth);
  CHECK(in_use.back() == in_use.front());
  in_use.clear();
  loss.backward();
  REQUIRE(in_use.size() == kDepth);
  for (std::size_t i = 2; i < kDepth; ++i) CHECK(in_use[i] < in_use[i - 1]);
}

// ---- seeds --------------------------------------------------------------------------------------------------------

TEST_CASE("backward from many elements requires a seed of the same shape") {
  const Parameter w(Array{1.0, 2.0});
  const tg::Tape tape;
  const Tensor y = w * 2.0;
  CHECK_THROWS_WITH_AS(y.backward(), Contains("backward(seed), got a tensor of shape (2)"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(y.backward(Array{1.0}), Contains("seed of shape (2), got (1)"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(y.backward(Array{{1.0, 1.0}}), Contains("got (1, 2)"), std::invalid_argument);
  CHECK_FALSE(w.has_grad());
  y.backward(Array{1.0, 1.0});
  check_close(w.grad(), Array{2.0, 2.0}, 0.0);
}

// ---- sweeping again -----------------------------------------------------------------------------------------------

TEST_CASE("A recording kept by retain_graph can be differentiated until a pass consumes it, then nothing changes") {
  const Parameter w = scalar(3.0);
  const tg::Tape tape;
  const Tensor loss = w * w * w;
  loss.backward(tg::retain_graph);
  loss.backward(tg::retain_graph);
  CHECK(w.grad()() == 2 * 27.0);
  loss.backward();
  CHECK_THROWS_WITH_AS(loss.backward(), Contains("up to the mul of shape ()"), std::logic_error);
  CHECK_THROWS_WITH_AS(loss.backward(tg::retain_graph), Contains("retain_graph"), std::logic_error);
  CHECK(w.grad()() == 3 * 27.0);
}

TEST_CASE("Operations recorded after a backward pass can be differentiated if they depend on nothing consumed") {
  const Parameter w = scalar(3.0);
  const tg::Tape tape;
  const Tensor y = w * w;
  y.backward();
  (y.detach() * w).backward();
  CHECK(w.grad()() == 6.0 + 9.0);
  CHECK_THROWS_AS((y * w).backward(), std::logic_error);
}

TEST_CASE("Operations consumed by a failed backward pass stay consumed, and a new recording is unaffected") {
  int failures = 1;
  const Parameter w = scalar(3.0);
  const tg::Tape tape;
  const Tensor loss = failing(w * w, failures) * 2.0;
  CHECK_THROWS_AS(loss.backward(), std::runtime_error);
  CHECK_THROWS_WITH_AS(loss.backward(), Contains("consumed by an earlier backward(), up to the mul"), std::logic_error);
  (w * w).backward();
  CHECK(w.grad()() == 6.0);
}

TEST_CASE("backward requires a tensor that depends on a parameter") {
  const Parameter w = scalar(3.0);
  const tg::Tape tape;
  CHECK_THROWS_WITH_AS(Tensor(Array{1.0}).backward(), Contains("depends on none"), std::logic_error);
  CHECK_THROWS_WITH_AS((w * w).detach().backward(), Contains("depends on none"), std::logic_error);
  CHECK_THROWS_WITH_AS(w.backward(), Contains("a parameter itself"), std::logic_error);
  CHECK_THROWS_AS(Tensor().backward(), std::logic_error);
  CHECK_FALSE(w.has_grad());
}

TEST_CASE("With two losses on a shared trunk, the second backward throws unless the first retains the graph") {
  for (const bool retains : {false, true}) {
    const Parameter w = scalar(3.0), head = scalar(5.0);
    const tg::Tape tape;
    const Tensor trunk = w * w;
    const Tensor first = trunk * 2.0, second = trunk * head;
    retains ? first.backward(tg::retain_graph) : first.backward();
    if (retains)
      second.backward();
    else
      CHECK_THROWS_WITH_AS(second.backward(), Contains("up to the mul of shape ()"), std::logic_error);
    CHECK(w.grad()() == (retains ? 12.0 + 30.0 : 12.0));
    CHECK(head.grad()() == (retains ? 9.0 : 0.0));
    CHECK(head.has_grad() == retains);
  }
}
