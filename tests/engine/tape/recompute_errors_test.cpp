// Errors of recompute, and unchanged state after failed calls.
#include <tapegrad/testing.hpp>

#include <functional>
#include <limits>

#include "in_double.hpp"
#include "text.hpp"

namespace {

const auto cubed = [](const auto& x) { return x * x * x; };

}  // namespace

TEST_CASE("An exception from the function changes nothing, in the first call and in the recomputation") {
  Parameter w = scalar(2), v = scalar(3);
  w.set_grad(Array(tg::Shape{}, 0.5));
  int failures = 1;
  const auto f = [&](const Tensor& x) {
    const Tensor y = x * w * tg::dropout(x, 0.0);
    if (failures-- > 0) throw std::runtime_error("the function fails");
    return y;
  };
  const tg::Tape tape;
  const Tensor x = v * w;
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(tg::recompute(std::ref(f), x), "the function fails", std::runtime_error);
  CHECK(tape.size() == size);
  const Tensor y = tg::recompute(std::ref(f), x) * w;  // v² w⁴
  failures = 1;
  w.set_value(Array(tg::Shape{}, 10.0));
  CHECK_THROWS_WITH_AS(y.backward(tg::retain_graph), "the function fails", std::runtime_error);
  CHECK(w.value()() == 10);
  CHECK(w.grad()() == 0.5);
  CHECK_FALSE(v.has_grad());
  CHECK(w.sweeps().total == 0);
  y.backward();
  CHECK(w.grad()() == 0.5 + 9 * 4 * 8);
  CHECK(v.grad()() == 2 * 3 * 16);
}

TEST_CASE("An exception from a rule in the function changes nothing") {
  const Parameter w = scalar(2), v = scalar(3);
  int failures = 1;
  const auto f = [&](const Tensor& x) {
    const Tensor y = tg::record("failing", Array(x.value()), {x}, [&](const Array& dy, auto& dx) {
      if (failures-- > 0) throw std::runtime_error("the rule fails");
      dx[0] += dy;
    });
    return y * w;
  };
  const tg::Tape tape;
  const Tensor y = tg::recompute(std::ref(f), v) + w * v;
  CHECK_THROWS_WITH_AS(y.backward(tg::retain_graph), "the rule fails", std::runtime_error);
  CHECK_FALSE(w.has_grad());
  y.backward();
  CHECK(w.grad()() == 6);
  CHECK(v.grad()() == 4);
}

TEST_CASE("Tensors of other tapes are refused, as x and as captures") {
  const Parameter w = scalar(2);
  const tg::Tape tape;
  const Tensor x = w * 2.0, captured = w * 3.0;
  CHECK(thrown_by([&] { tg::recompute([&](const Tensor& h) { return h * captured; }, x); }) ==
        "[mul] expected inputs recorded on this Tape, got one recorded on an outer Tape; detach() makes it a constant");
  const tg::Tape inner;
  CHECK(thrown_by([&] { tg::recompute(std::ref(cubed), x); }) ==
        "[recompute] expected inputs recorded on this Tape, got "
        "one recorded on an outer Tape; detach() makes it a constant");
}

TEST_CASE("retain_grad and hooks on x are refused in the function, and allowed on its own tensors") {
  const Parameter w = scalar(2);
  const tg::Tape tape;
  const Tensor x = w * 2.0;
  for (const bool hook : {true, false}) {
    const auto watches = [&](Tensor h) {
      if (hook)
        h.register_hook([](Array&) {});
      else
        h.retain_grad();
      return h * 2.0;
    };
    CHECK_THROWS_WITH_AS(
        tg::recompute(std::ref(watches), x),
        "[recompute] expected hooks and retain_grad() on x outside the function, got them inside; set them "
        "before the call",
        std::logic_error);
  }
  std::vector<double> seen;
  Tensor kept;
  const auto f = [&](const Tensor& h) {
    Tensor inside = h * 5.0;
    inside.register_hook([&](Array& g) { seen.push_back(g()), g *= 10.0; });
    inside.retain_grad();
    kept = inside;
    return inside * inside;
  };
  tg::recompute(std::ref(f), x).backward();
  CHECK(seen == std::vector<double>{40});
  CHECK(kept.grad()() == 400);
  CHECK(w.grad()() == 400 * 5 * 2);
}

TEST_CASE("A function that computes something else in the second call is refused if this is detectable") {
  Parameter w(Array{2.0, 3.0});
  const auto thrown = [&](auto first, auto then) {
    bool again = false;
    const tg::Tape tape;
    const Tensor x = w * 2.0;
    const auto f = [&](const Tensor& h) { return std::exchange(again, true) ? then(h) : first(h); };
    const Tensor y = tg::recompute(std::ref(f), x);
    return thrown_by([&] { tg::sum(y).backward(); });
  };
  const auto draws = [](const Tensor& h) { return tg::dropout(h, 0.5); };
  const auto other = [](const Tensor& h) { return tg::sum(h); };
  const auto same = [](const Tensor& h) { return h; };
  CHECK(thrown(cubed, cubed) == "nothing");
  w.zero_grad();
  CHECK(thrown(draws, cubed) ==
        "[recompute] expected a function with the same number of random draws in each call, got 1 in the first call "
        "and fewer in the repeated one");
  CHECK(thrown(cubed, draws) ==
        "[recompute] expected a function with the same number of random draws in each call, got 0 in the first call "
        "and more in the repeated one");
  CHECK(thrown(cubed, other) ==
        "[recompute] expected a function with the same result in each call, got (2) in the first call and then ()");
  CHECK(thrown(cubed, same) ==
        "[recompute] expected a function with the same result in each call, got (2) in the first call and then x "
        "itself");
  CHECK_FALSE(w.has_grad());
}

TEST_CASE("Anomaly mode names the operation in the function, and ignores infinities in x") {
  Parameter w(Array{1.0, 0.0});
  w.set_name("layer.weight");
  const tg::Tape tape({.detect_anomaly = true});
  const Tensor x = w * 1.0;
  const std::string forward = thrown_by([&] { tg::recompute([](const Tensor& h) { return tg::log(-h); }, x); });
  CHECK(forward.find("[log] expected finite values, got NaN") == 0);
  const Tensor y = tg::recompute([](const Tensor& h) { return tg::sqrt(h) * 1.0; }, x);
  const std::string backward = thrown_by([&] { tg::sum(y).backward(); });
  CHECK(backward.find("[sqrt] expected finite gradients, the backward rule produced inf") == 0);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto masked = [&](const Tensor& h) { return tg::masked_fill(h, tg::BoolArray{false, true}, -infinity); };
  const Tensor z =
      tg::recompute([](const Tensor& h) { return tg::softmax(h, -1); }, tg::recompute(std::ref(masked), w * 1.0));
  CHECK(z.value() == Array{1.0, 0.0});
  CHECK(thrown_by([&] { tg::sum(z).backward(); }) == "nothing");
}

TEST_CASE("recompute detects a change of what the function reads as a constant") {
  const std::string same = "[recompute] expected a function with the same result in each call, got different numbers ";
  using F = std::function<Tensor(const Tensor&, const Parameter&, const Array&)>;
  const std::vector<std::pair<const char*, F>> ways{
      {"detach()", [](const Tensor& x, const Parameter& w, const Array&) { return x * w.detach(); }},
      {"value()", [](const Tensor& x, const Parameter& w, const Array&) { return x * Tensor(w.value()); }},
      {"NoGrad",
       [](const Tensor& x, const Parameter& w, const Array&) {
         const auto scale = [&] {
           const tg::NoGrad pause;
           return w * 1.0;
         };
         return x * scale();
       }},
      {"a captured array", [](const Tensor& x, const Parameter&, const Array& a) { return x * Tensor(a); }}};
  for (const auto& row : ways) {
    CAPTURE(row.first);
    Parameter w = scalar(5), x = scalar(2);
    Array a(tg::Shape{}, 5.0);
    for (const bool changes : {false, true}) {
      x.zero_grad();
      const tg::Tape tape;
      const Tensor y = tg::recompute([&, g = row.second](const Tensor& h) { return g(h, w, a); }, x * 1.0);
      if (changes) w.set_value(Array(tg::Shape{}, 50.0)), a = 50;
      if (changes)
        CHECK(thrown_by([&] { y.backward(); }).starts_with(same));
      else
        y.backward();
      CHECK(x.grad()() == (changes ? 0 : 5));
    }
  }
}

TEST_CASE("recompute detects a function that reads another parameter when called again") {
  Parameter w = scalar(3), v = scalar(3);  // equal values, so the checksum does not detect it
  v.set_name("v");
  bool again = false;
  const tg::Tape tape;
  const Tensor y = tg::recompute([&](const Tensor& x) { return x * (again ? v : w); }, Tensor(Array(tg::Shape{}, 2.0)));
  again = true;
  CHECK(thrown_by([&] { y.backward(); }) ==
        "[recompute] expected a function that reads the same parameters in each call, got one that also reads v");
  CHECK_FALSE(w.has_grad());
  CHECK_FALSE(v.has_grad());
}
