// recompute repeats the first call: the same bits, from the same values, with the same random numbers.
#include <tapegrad/inspect/internal/formula.hpp>
#include <tapegrad/inspect/internal/observers.hpp>
#include <tapegrad/testing.hpp>

#include <cstring>
#include <functional>
#include <thread>

#include "in_double.hpp"
#include "text.hpp"
#include "threads.hpp"

namespace {

// Calls f directly or through recompute.
struct Caller {
  bool recomputes;
  template <class F, class T> tg::Tensor<T> operator()(const F& f, const tg::Tensor<T>& x) const {
    return recomputes ? tg::recompute(F(f), x) : f(x);
  }
};

template <class T> bool same_bits(const tg::Array<T>& a, const tg::Array<T>& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// A step's results: its value, each parameter's gradient and number of backward passes.
template <class T> struct Step {
  std::vector<tg::Array<T>> numbers;
  std::vector<std::size_t> sweeps;
  tg::Generator::State random;
};

template <class T> void check_same(const Step<T>& a, const Step<T>& b) {
  REQUIRE(a.numbers.size() == b.numbers.size());
  for (std::size_t i = 0; i < a.numbers.size(); ++i) {
    CAPTURE(i);
    CHECK(same_bits(a.numbers[i], b.numbers[i]));
  }
  CHECK(a.sweeps == b.sweeps);
  CHECK(a.random == b.random);
}

// Runs backward from loss(call), where call is a Caller.
template <class T, class Loss>
Step<T> step_of(const tg::Parameters<T>& parameters, bool recomputes, Loss loss, const tg::TapeOptions& options = {}) {
  tg::manual_seed(7);
  for (const auto& p : parameters) p->zero_grad();
  const tg::Tape tape(options);
  const tg::Tensor<T> y = loss(Caller{recomputes});
  tg::sum(y * y).backward();
  Step<T> step{{y.value()}, {}, tg::default_generator().state()};
  for (const auto& p : parameters) {
    step.numbers.push_back(p->has_grad() ? p->grad() : tg::Array<T>{});
    step.sweeps.push_back(p->sweeps().total);
  }
  return step;
}

template <class T, class Loss> void check_same_with_and_without(const tg::Parameters<T>& parameters, Loss loss) {
  check_same(step_of<T>(parameters, true, loss), step_of<T>(parameters, false, loss));
}

// A GPT with dropout in its blocks and the head's weight tied to the embedding.
template <class T> struct Gpt {
  tg::Embedding<T> embedding{30, 32};
  std::vector<tg::TransformerBlock<T>> blocks;
  TAPEGRAD_FIELDS(embedding, blocks)

  Gpt() {
    for (int i = 0; i < 3; ++i)
      blocks.emplace_back(32, 4, tg::TransformerBlockOptions{.dropout = 0.1, .attention_dropout = 0.1});
  }
  // The second block is used twice.
  tg::Tensor<T> operator()(const tg::IntArray& ids, Caller call) const {
    tg::Tensor<T> x = embedding(ids);
    for (const std::size_t i : {0, 1, 1, 2})
      x = call([&block = blocks[i]](const auto& h) { return block(h, tg::AttentionMask::causal()); }, x);
    return tg::linear(x, embedding.weight);
  }
};

const auto cube = [](const auto& x) { return x * x * x; };

}  // namespace

// ---- the same bits --------------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("Values, gradients and random numbers match the model without recompute", T, float, double) {
  tg::manual_seed(1);
  Gpt<T> model;
  tg::IntArray ids = tg::random_permutation(4 * 24);
  for (std::int64_t& id : ids) id %= 30;
  ids.reshape({4, 24});
  for (const std::size_t threads : {1, 3}) {
    CAPTURE(threads);
    const Threads set(threads);
    check_same_with_and_without<T>(tg::parameters(model), [&](Caller call) { return model(ids, call); });
  }
}

TEST_CASE("Gradients are summed in the same order if x and a parameter are used before, in and after the function") {
  // Sums that depend on the order: in float, 1e8 + 1 - 1e8 is 0, but 1e8 - 1e8 + 1 is 1.
  tg::Parameter<float> w(tg::Array<float>{1.5F, -0.25F}), v(tg::Array<float>{3.1F, 0.7F});
  check_same_with_and_without<float>({w, v}, [&](Caller call) {
    const tg::Tensor<float> x = v * 1.1F;
    const auto before = x * 1e8 + w * 1e8;
    const auto inside = call([&](const auto& h) { return (h * w + h * 0.3F - w) * w + tg::exp(h) + w * 1.7; }, x);
    return tg::cat({before, inside, w * -1e8 + x * 3.3F, x * -1e8, w * 0.3F});
  });
}

TEST_CASE("The function may return its argument, a parameter or a constant") {
  tg::Parameter<double> w(Array{2.0, 3.0});
  const Tensor constant(Array{1.0, -1.0});
  const tg::Tape tape;
  const Tensor x = w * 2.0;
  const std::size_t size = tape.size();
  const auto y = tg::recompute([](const auto& h) { return h; }, x);
  (void)tg::recompute([&](const auto&) { return constant; }, x);
  const auto p = tg::recompute([&](const auto&) -> Tensor { return w; }, x);
  CHECK_FALSE(tg::recompute(std::ref(cube), constant).requires_grad());
  CHECK(tape.size() == size);
  tg::sum(y * p).backward();  // 2 w²
  CHECK(w.grad() == Array{8.0, 12.0});
}

TEST_CASE("x may be a constant, a parameter or frozen, and the function may also capture it") {
  Parameter w(Array{2.0, 3.0}), v(Array{0.3, 0.7}), frozen(Array{1.5, 2.5});
  frozen.set_requires_grad(false);
  const Tensor constant(Array{1.0, -1.0});
  const auto f = [&](const Tensor& x) { return (x * w + w * w * frozen + x) * x - w; };
  const tg::Parameters<double> all{w, v, frozen};
  check_same_with_and_without<double>(all, [&](Caller call) { return call(f, constant); });
  check_same_with_and_without<double>(all, [&](Caller call) { return call(f, w) + w; });
  check_same_with_and_without<double>(all, [&](Caller call) { return call(f, v) * v; });
  check_same_with_and_without<double>(all, [&](Caller call) { return call(f, frozen); });
  check_same_with_and_without<double>(all, [&](Caller call) { return call(cube, v * 2.0); });
}

TEST_CASE("Parameters that the result does not depend on are not reached") {
  const Parameter w = scalar(2), unused = scalar(3), behind_x = scalar(4);
  const tg::Tape tape;
  const Tensor x = behind_x * 2.0;
  const auto f = [&](const Tensor& h) {
    (void)(unused * h);
    return w * w;
  };
  tg::recompute(std::ref(f), x).backward();
  CHECK(w.grad()() == 4);
  CHECK(w.sweeps().total == 1);
  CHECK(unused.sweeps().total == 0);
  CHECK(behind_x.sweeps().total == 0);
}

TEST_CASE("Calls nest") {
  Parameter w(Array{1.1, 0.3}), v(Array{0.7, -0.4});
  check_same_with_and_without<double>({w, v}, [&](Caller call) {
    const auto inner = [&](const Tensor& h) { return tg::dropout(tg::tanh(h * w + w), 0.5); };
    const auto outer = [&w, &v, call, inner](const Tensor& h) {
      return tg::dropout(call(inner, call(inner, h * v) + w), 0.5) * h;
    };
    return call(outer, call(outer, v * 2.0));
  });
}

// ---- random numbers -------------------------------------------------------------------------------------------------

TEST_CASE("The same elements are dropped again with any generator, and no generator advances") {
  Parameter x(Array(tg::Shape{1000}, 1.0));
  tg::Generator own(3);
  const tg::Tape tape;
  const auto y = tg::recompute([&](const Tensor& h) { return tg::dropout(tg::dropout(h, 0.3), 0.3, true, own); }, x);
  (void)tg::uniform<double>({3}, 0, 1);
  (void)own.next_key();
  const auto after = std::pair(tg::default_generator().state(), own.state());
  tg::sum(y).backward();
  CHECK(x.grad() == y.value());
  CHECK(std::pair(tg::default_generator().state(), own.state()) == after);
}

TEST_CASE("A hook in the function draws new random numbers, as elsewhere") {
  const Parameter x = scalar(2);
  std::vector<double> drawn;
  const auto f = [&](const Tensor& h) {
    Tensor y = tg::dropout(h, 0.0) * 3.0;
    y.register_hook([&](Array&) { drawn.push_back(tg::uniform<double>({}, 0, 1)()); });
    return y * 1.0;
  };
  const tg::Tape tape;
  const auto y = tg::recompute(std::ref(f), x);
  y.backward(tg::retain_graph);
  y.backward();
  REQUIRE(drawn.size() == 2);
  CHECK(drawn[0] != drawn[1]);
  CHECK(x.grad()() == 6);
}

TEST_CASE("Other threads may draw random numbers meanwhile") {
  const auto train = [] {
    for (int step = 0; step < 200; ++step) {
      Parameter x(Array(tg::Shape{64}, 1.0));
      const tg::Tape tape;
      const auto y = tg::recompute([](const Tensor& h) { return tg::dropout(tg::dropout(h, 0.5), 0.5); }, x);
      tg::sum(y).backward();
      if (x.grad() != y.value()) return false;
    }
    return true;
  };
  bool other = false;
  std::thread thread([&] { other = train(); });
  CHECK(train());
  thread.join();
  CHECK(other);
}

// ---- calls and stored values --------------------------------------------------------------------------------------

TEST_CASE("The function is called once without a tape, and once more per backward pass with one") {
  const Parameter w = scalar(3);
  int calls = 0;
  const auto f = [&](const Tensor& x) { return ++calls, x * x; };
  CHECK(tg::recompute(std::ref(f), w).item() == 9);
  CHECK(calls == 1);
  const tg::Tape tape;
  const Tensor y = [&] {
    const tg::NoGrad pause;
    return tg::recompute(std::ref(f), w);
  }();
  CHECK_FALSE(y.requires_grad());
  CHECK(calls == 2);
  const Tensor z = tg::recompute(std::ref(f), w);
  CHECK(calls == 3);
  z.backward(tg::retain_graph);
  CHECK(calls == 4);
  z.backward();
  CHECK(calls == 5);
  CHECK(w.grad()() == 12);
  CHECK(w.sweeps().total == 2);
  CHECK_THROWS_WITH_AS(z.backward(), Contains("up to the recompute of shape ()"), std::logic_error);
}

TEST_CASE("A referenced layer is called in place, and a moved function is stored") {
  struct Scaled {
    Parameter scale = scalar(2);
    Tensor operator()(const Tensor& x) const { return x * scale; }
  };
  Scaled named, gone;
  const Parameter x = scalar(3);
  const tg::Tape tape;
  (tg::recompute(std::ref(named), x) * tg::recompute(Scaled{}, x) * tg::recompute(std::move(gone), x)).backward();
  CHECK(named.scale.grad()() == 3 * 36);
  CHECK(x.grad()() == 3 * 2 * 36);
}

TEST_CASE("The tape saves x but not the values saved by the function's operations") {
  const Parameter w(Array(tg::Shape{100}, 0.5));
  const auto f = [&](const Tensor& x) { return tg::tanh(tg::exp(tg::tanh(tg::exp(x * w)) * w)); };
  const tg::Tape tape({.profile = true});
  const std::ptrdiff_t before = tg::detail::array_bytes_in_use;
  const Tensor x = w * 1.0;
  const Tensor y = tg::recompute(std::ref(f), x);
  const Tensor z = tg::recompute([f, more = Tensor(Array(tg::Shape{50}))](const Tensor& h) { return f(h); }, y);
  CHECK(tg::detail::array_bytes_in_use - before == (3 * 100 + 50) * sizeof(double));
  const auto& recording = tape.recording()->of<double>();
  REQUIRE(recording.size() == 4);
  CHECK(tg::detail::observers_of(recording)->profile()->entries()[2].saved == 100 * sizeof(double));
  // Arrays shared by a function are not counted, such as that of `more`.
  CHECK(tg::detail::observers_of(recording)->profile()->entries()[3].saved == 100 * sizeof(double));
  tg::sum(z).backward();
  CHECK(tg::detail::observers_of(recording)->profile()->entries()[2].backward > 0);
  CHECK(contains(printed(tape), "recompute"));
}

TEST_CASE("recompute works with keep_values, and its node has a formula and contributions") {
  Parameter w(Array{1.5, 0.5}), v(Array{0.5, 0.75});
  const auto loss = [&](Caller call) { return call([&](const Tensor& x) { return x * w * x; }, v * 2.0) * v * w; };
  check_same(step_of<double>({w, v}, true, loss, {.keep_values = true}), step_of<double>({w, v}, false, loss));
  const tg::Tape tape({.keep_values = true});
  tg::sum(tg::recompute([&](const Tensor& x) { return x * w; }, v * 2.0)).backward();
  const auto& recording = tape.recording()->of<double>();
  const auto& node = recording[3];
  REQUIRE(std::string(node.operation.name) == "recompute");
  CHECK(tg::detail::observers_of(recording)->kept_values()->entries()[3].contributions.size() == 2);
  CHECK(*tg::detail::observers_of(recording)->kept_values()->entries()[3].contributions[1] == v.value() * 2.0);
  const auto formula = tg::detail::formula_of(node.operation);
  CHECK(formula.value == "y = f(x, θ)");
  CHECK(formula.rules.size() == 2);
}

// ---- parameters -----------------------------------------------------------------------------------------------------

TEST_CASE("Hooks of parameters and of x get the complete gradient once") {
  Parameter w = scalar(2);
  std::vector<double> of_w, of_x;
  w.register_hook([&](Array& g) { of_w.push_back(g()); });
  const tg::Tape tape;
  Tensor x = w * 3.0;
  x.register_hook([&](Array& g) { of_x.push_back(g()), g *= 2.0; });
  x.retain_grad();
  const auto f = [&](const Tensor& h) { return h * w + h * w; };
  (tg::recompute(std::ref(f), x) + w * x).backward();  // 3 x w
  CHECK(of_x == std::vector<double>{6});
  CHECK(x.grad()() == 12);
  CHECK(of_w == std::vector<double>{18 + 36});
  CHECK(w.sweeps().total == 1);
}

TEST_CASE("Gradients use the values that the function read, also if parameters changed since") {
  Parameter w(Array{2.0, 3.0}), v(Array{5.0, 7.0});
  const auto f = [&](const Tensor& x) { return x * w * w * v; };
  for (const bool recomputes : {false, true}) {
    CAPTURE(recomputes);
    for (Parameter* p : {&w, &v}) p->zero_grad();
    w.set_value(Array{2.0, 3.0});
    v.set_value(Array{5.0, 7.0});
    const tg::Tape tape;
    const Tensor y = tg::sum(Caller{recomputes}(f, v));
    w.mutable_value().fill(100.0);
    v.set_value(Array{-1.0, -1.0});
    y.backward();
    CHECK(w.grad() == Array{2 * 2 * 25.0, 2 * 3 * 49.0});
    CHECK(v.grad() == Array{2 * 5 * 4.0, 2 * 7 * 9.0});
    CHECK(w.value() == Array{100.0, 100.0});
    CHECK(v.value() == Array{-1.0, -1.0});
  }
}

TEST_CASE("A weight rounded to bfloat16 after the first call still has its earlier value") {
  const tg::Shape one{1, 1};
  const Array exact(one, 1.0069);  // between two bfloat16 numbers
  const Tensor x(Array(one, 3.0));
  for (const bool recomputes : {false, true}) {
    CAPTURE(recomputes);
    tg::Weight<double> w(exact);
    Parameter v(Array(one, 1.0));
    const tg::Tape tape;
    const Tensor y = tg::sum(Caller{recomputes}([&](const Tensor& in) { return tg::linear(in, w); }, v * x));
    w.hold_in_bfloat16();
    y.backward();
    CHECK(v.grad()(0, 0) == 3.0 * exact(0, 0));
    CHECK(w.is_in_bfloat16());
    CHECK_THROWS_AS(w.value(), std::logic_error);
  }
}

TEST_CASE("Parameters frozen since then get no gradient, and others get theirs") {
  Parameter w = scalar(2), v = scalar(3);
  const tg::Tape tape;
  const Tensor y = tg::recompute([&](const Tensor& x) { return x * w; }, v);
  const Tensor z = tg::recompute([&](const Tensor& x) { return x * w; }, Tensor(Array(tg::Shape{}, 5.0)));
  w.set_requires_grad(false);
  y.backward();
  z.backward();
  CHECK_FALSE(w.has_grad());
  CHECK(v.grad()() == 2);
}

TEST_CASE("Reports show the tape's backward pass, and names in the function and of its result are kept") {
  struct Model {
    Parameter w = scalar(2);
    TAPEGRAD_FIELDS(w)
  } model;
  Parameter other = scalar(3);
  other.set_name("forgotten");
  const tg::Tape tape;
  Tensor x = model.w * 2.0;
  x.set_name("hidden");
  std::string inside;
  const auto f = [&](Tensor h) {
    inside = h.name();
    h.set_name("renamed");
    CHECK(h.name() == "renamed");
    Tensor y = h * other;
    y.set_name("made");
    return y;
  };
  const Tensor y = tg::recompute(std::ref(f), x);
  CHECK(y.name() == "made");
  CHECK(inside == "hidden");
  inside.clear();
  y.backward();
  CHECK(inside == "hidden");
  std::ostringstream report;
  CHECK_FALSE(tg::gradient_report(report, model));
  CHECK(report.str().find("forgotten") != std::string::npos);
}
