/// Cases outside the table of operations: kinks, ties, infinities and NaN, random numbers, long sums.
#include <type_traits>
#include <vector>

#include "close.hpp"
#include "special_values.hpp"
#include "threads.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Tensor = tg::Tensor<double>;

namespace {

// The gradient of the sum of f(x).
template <class F> Array gradient(const Array& x, F f) {
  const tg::Parameter<double> parameter(x);
  tg::Tape tape;
  tg::sum(f(parameter)).backward();
  return parameter.grad();
}

template <class T> bool all_nan(const tg::Array<T>& x) {
  return std::all_of(x.begin(), x.end(), [](T value) { return std::isnan(value); });
}

}  // namespace

TEST_CASE("abs and relu have gradient 0 at their kinks, and clamp outside, also if the next one is infinite") {
  check_close(gradient({-1, 0, 2}, [](const Tensor& x) { return tg::abs(x); }), Array{-1, 0, 1});
  check_close(gradient({-1, 0, 4}, [](const Tensor& x) { return tg::sqrt(tg::relu(x)); }), Array{0, 0, 0.25});
  check_close(gradient({-1, 4}, [](const Tensor& x) { return tg::sqrt(tg::clamp(x, 0)); }), Array{0, 0.25});
}

TEST_CASE("accuracy skips ignored labels, also those of a class, and is NaN without others") {
  const Array logits{{2, 1}, {0, 1}, {1, 0}};
  CHECK(tg::accuracy(logits, {0, 1, 1}) == doctest::Approx(2.0 / 3));
  CHECK(tg::accuracy(logits, {0, 1, 1}, 0) == 0.5);
  CHECK(tg::accuracy(logits, {-100, 1, -100}) == 1);
  CHECK(std::isnan(tg::accuracy(logits, {1, 1, 1}, 1)));
}

TEST_CASE("The larger and the smaller element next to a NaN are NaN, and both get the gradient, as in PyTorch") {
  const tg::Parameter<double> a(Array{kNaN, 1, kNaN, 0}), b(Array{1, kNaN, kNaN, kInfinity});
  tg::Tape tape;
  const Tensor largest = tg::maximum(a, b), smallest = tg::minimum(a, b);
  for (const Tensor& y : {largest, smallest}) CHECK(all_nan(tg::narrow(y, 0, 0, 3).value()));
  CHECK(largest.value()(3) == kInfinity);
  CHECK(smallest.value()(3) == 0);
  (tg::sum(largest) + 2 * tg::sum(smallest)).backward();
  check_close(a.grad(), Array{3, 3, 3, 2});
  check_close(b.grad(), Array{3, 3, 3, 1});
}

TEST_CASE("Logarithms, roots and quotients at the limits of their range give infinities and NaN, as in PyTorch") {
  check_close(tg::log(Tensor(Array{0})).value(), Array{-kInfinity});
  check_close(gradient({0}, [](const Tensor& x) { return tg::log(x); }), Array{kInfinity});
  check_close(gradient({0}, [](const Tensor& x) { return tg::sqrt(x); }), Array{kInfinity});
  check_close((1.0 / Tensor(Array{0.0})).value(), Array{kInfinity});
  CHECK(all_nan(tg::log(Tensor(Array{-1})).value()));
  CHECK(all_nan(tg::sqrt(Tensor(Array{-1})).value()));
  CHECK(all_nan(tg::relu(Tensor(Array{std::nan("")})).value()));
  CHECK(all_nan(tg::amax(Tensor(Array{1, std::nan(""), 2})).value()));
}

TEST_CASE("The softmax of only -inf is NaN, as in PyTorch") {
  const Tensor x(Array{{-kInfinity, -kInfinity}, {0, -kInfinity}});
  CHECK(all_nan(Array(tg::select(tg::softmax(x, -1), 0, 0).value())));
  CHECK(all_nan(Array(tg::select(tg::log_softmax(x, -1), 0, 0).value())));
  check_close(tg::select(tg::softmax(x, -1), 0, 1).value(), Array{1, 0});
  check_close(tg::select(tg::log_softmax(x, -1), 0, 1).value(), Array{0, -kInfinity});
}

TEST_CASE("Logits of -inf have probability 0 and pass no gradient") {
  const tg::Parameter<double> logits(Array{{0, -kInfinity, 0}});
  tg::Tape tape;
  const Tensor loss = tg::cross_entropy(logits, {0});
  loss.backward();
  CHECK(loss.item() == doctest::Approx(std::log(2)));
  check_close(logits.grad(), Array{{-0.5, 0, 0.5}});
}

TEST_CASE("The mean over only ignored labels is NaN and passes no gradient, as in PyTorch") {
  const tg::Parameter<double> logits(Array{{1, 2}, {3, 4}});
  tg::Tape tape;
  const Tensor loss = tg::cross_entropy(logits, {-100, -100});
  CHECK(std::isnan(loss.item()));
  loss.backward();
  check_close(logits.grad(), Array{{0, 0}, {0, 0}});
}

TEST_CASE_TEMPLATE("Sums over many slices, also of gradients, add partial sums, along any axes", T, float, double) {
  // A running float sum of 0.1 is 1% off after a million terms, and 0.02% after 30,000.
  constexpr T kTenth = static_cast<T>(0.1);
  struct Case {
    tg::Shape shape;
    tg::Axes axes;
  };
  const std::vector<Case> cases{{{100003, 2}, {0}},
                                {{3, 30000, 2}, {1}},
                                {{150, 300, 2}, {0, 1}},
                                {{100, 2, 300, 2}, {0, 2}},
                                {{2, 2, 30, 2, 1025, 2}, {0, 2, 4}},
                                {{1100, 300}, {0}}};
  for (const Case& c : cases)
    for (const std::size_t threads : {1, 3}) {
      CAPTURE(tg::to_string(c.shape));
      CAPTURE(threads);
      const Threads limit(threads);
      const tg::Parameter<T> x(tg::Array<T>(c.shape, kTenth));
      const tg::Tensor<T> sum = tg::sum(x, c.axes), mean = tg::mean(x, c.axes);
      const double count = static_cast<double>(x.size()) / static_cast<double>(sum.size());
      const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-12;
      for (const T value : sum.value()) CHECK(std::abs(value / (count * kTenth) - 1) <= tolerance);
      for (const T value : mean.value()) CHECK(std::abs(value / double(kTenth) - 1) <= tolerance);

      const tg::Parameter<T> bias(tg::Array<T>(tg::sum(x, c.axes, tg::KeepDims::yes).shape(), T(0)));
      tg::Tape tape;
      (x + bias).backward(tg::Array<T>(c.shape, kTenth));
      for (const T value : bias.grad()) CHECK(std::abs(value / (count * kTenth) - 1) <= tolerance);
    }
}

TEST_CASE_TEMPLATE("The mean of equal numbers is that number, and each gets an equal share of the gradient", T, float,
                   double) {
  for (const std::size_t n : {1, 3, 49, 98, 103, 107, 161}) {
    CAPTURE(n);
    const tg::Parameter<T> x(tg::Array<T>(tg::Shape{n}, T(1)));
    tg::Tape tape;
    const tg::Tensor<T> mean = tg::mean(x);
    CHECK(mean.item() == 1);
    mean.backward();
    CHECK(x.grad()(0) == 1 / static_cast<T>(n));
  }
}

TEST_CASE("The gradient of log at a tiny number is a quotient, since its reciprocal would be infinite") {
  const float tiny = 1e-40f;
  const tg::Parameter<float> p(tg::Array<float>{tiny, 0.5f});
  tg::Tape tape;
  tg::sum(p * tg::log(p)).backward();
  CHECK(p.grad()(0) == doctest::Approx(std::log(1e-40) + 1).epsilon(1e-5));
  CHECK(p.grad()(1) == doctest::Approx(std::log(0.5) + 1).epsilon(1e-5));
}

TEST_CASE("dropout in evaluation mode returns its input") {
  const Tensor x(Array{1, 2, 3});
  CHECK(tg::dropout(x, 0.5, false).shared_value() == x.shared_value());
}

// ---- elementwise functions ----------------------------------------------------------------------------------------

TEST_CASE("clamp passes the gradient at its bounds, keeps NaN, and returns NaN for a NaN bound, as in PyTorch") {
  const auto clamp = [](const Tensor& x) { return tg::clamp(x, -1, 1); };
  check_close(clamp(Tensor(Array{-kInfinity, -1, 0.5, 1, kInfinity})).value(), Array{-1, -1, 0.5, 1, 1});
  check_close(gradient({-2, -1, 0.5, 1, 2, kNaN}, clamp), Array{0, 1, 1, 1, 0, 0});
  CHECK(std::isnan(clamp(Tensor(Array{kNaN})).item()));
  CHECK((all_nan(tg::clamp(Tensor(Array{0}), kNaN, 1).value()) &&
         all_nan(tg::clamp(Tensor(Array{0}), -1, kNaN).value())));
  check_close(gradient({0, 2}, [](const Tensor& x) { return tg::clamp(x, 1, -1); }), Array{0, 0});
}

TEST_CASE("softplus and silu neither overflow nor lose NaN") {
  const Array x{-kInfinity, -1000, 0, 20, 20.5, 1000, kInfinity};
  for (const double threshold : {20.0, kInfinity}) {
    const auto softplus = [threshold](const auto& a) { return tg::softplus(a, 1, threshold); };
    const Array expected{0, 0, std::log(2), 20 + std::exp(-20), 20.5, 1000, kInfinity};
    check_close(softplus(Tensor(x)).value(), expected, 1e-9);
    check_close(softplus(tg::Tensor<float>(x)).value(), expected, 1e-6);
    check_close(gradient(x, softplus), Array{0, 0, 0.5, 1, 1, 1, 1}, 1e-8);
    CHECK(std::isnan(softplus(Tensor(Array{kNaN})).item()));
  }
  check_close(tg::silu(tg::Tensor<float>(Array{-1e4, 0, 1e4})).value(), Array{0, 0, 1e4});
  check_close(gradient({-1e4, 0, 1e4}, [](const Tensor& a) { return tg::silu(a); }), Array{0, 0.5, 1});
  CHECK(all_nan(tg::silu(Tensor(Array{-kInfinity, kNaN})).value()));
}

TEST_CASE("Powers at 0, of negative bases and of infinities match PyTorch, with tensors and numbers as exponents") {
  const auto check = [](double base, double exponent, double value, double to_base, double to_exponent) {
    CAPTURE(base);
    CAPTURE(exponent);
    tg::Parameter<double> a{Array(base)}, b{Array(exponent)};
    tg::Tape tape;
    const Tensor y = tg::pow(a, b);
    y.backward();
    const auto same = [](double x, double expected) {
      CHECK((std::isnan(expected) ? std::isnan(x) : x == expected || x == doctest::Approx(expected)));
    };
    same(y.item(), value);
    same(a.grad()(), to_base);
    same(b.grad()(), to_exponent);
    a.zero_grad();
    const Tensor of_number = tg::pow(a, exponent);
    of_number.backward();
    same(of_number.item(), value);
    same(a.grad()(), to_base);
  };
  check(0, 0, 1, 0, 0);
  check(0, 1, 0, 1, 0);
  check(-2, 0, 1, 0, kNaN);
  check(-2, 1, -2, 1, kNaN);
  check(0, -1, kInfinity, -kInfinity, -kInfinity);
  check(0, 0.5, 0, kInfinity, 0);
  check(-2, 3, -8, 12, kNaN);
  check(-2, 0.5, kNaN, kNaN, kNaN);
  check(kNaN, 0, 1, 0, kNaN);
  check(1, kNaN, 1, kNaN, 0);
  check(kInfinity, -1, 0, 0, kNaN);
  check(0, kInfinity, 0, kNaN, 0);
}

TEST_CASE("var divides by at least 0: it is NaN for one element, infinite if the correction leaves 0") {
  CHECK(std::isnan(tg::var(Tensor(Array{3})).item()));
  CHECK(std::isnan(tg::var(Tensor(Array(3.0)), 0).item()));
  CHECK(all_nan(gradient({3}, [](const Tensor& x) { return tg::var(x); })));
  const Tensor two(Array{3, 4});
  CHECK(tg::var(two, 0, 2).item() == kInfinity);
  CHECK(tg::var(two, 0, 5).item() == kInfinity);
  CHECK(tg::var(two, 0, 0).item() == 0.25);
  CHECK(tg::var(two, 0, -2).item() == 0.125);
  CHECK(tg::var(two, 0, 0.5).item() == doctest::Approx(1.0 / 3));
  check_close(gradient({3, 4}, [](const Tensor& x) { return tg::var(x, 0, 2); }), Array{-kInfinity, kInfinity});
}

// ---- losses -------------------------------------------------------------------------------------------------------

TEST_CASE("Binary cross-entropy is exact for logits of 1,000 and matches PyTorch for infinite ones") {
  const tg::Parameter<double> x(Array{-1000, 1000, -40, 40, kInfinity, -kInfinity}), t(Array{1, 1, 0, 1, 1, 0});
  tg::Tape tape;
  const Tensor y = tg::binary_cross_entropy_with_logits(x, t, {.reduction = tg::Reduction::none});
  y.backward(Array{1, 1, 1, 1, 1, 1});
  const double tiny = std::exp(-40);
  CHECK(y.value()(0) == 1000);
  CHECK(y.value()(1) == 0);
  CHECK(y.value()(2) / tiny == doctest::Approx(1));
  CHECK(y.value()(3) / tiny == doctest::Approx(1));
  CHECK(std::isnan(y.value()(4)));
  CHECK(std::isnan(y.value()(5)));
  CHECK(x.grad()(2) / tiny == doctest::Approx(1));
  CHECK(x.grad()(3) / tiny == doctest::Approx(-1));
  check_close(x.grad(), Array{-1, 0, tiny, -tiny, 0, 0});
  check_close(t.grad(), Array{1000, -1000, 40, -40, -kInfinity, kInfinity});
}

TEST_CASE("A logit of -inf matches PyTorch with probabilities, even with probability 0") {
  const tg::Parameter<double> x(Array{{0, -kInfinity, 0}}), t(Array{{0.5, 0, 0.5}});
  tg::Tape tape;
  const Tensor loss = tg::cross_entropy(x, t);
  loss.backward();
  CHECK(std::isnan(loss.item()));
  check_close(x.grad(), Array{{0, 0, 0}});
  check_close(t.grad(), Array{{std::log(2), kInfinity, std::log(2)}});
}

// ---- compound assignment ------------------------------------------------------------------------------------------

TEST_CASE("Compound assignment does not change other handles or values saved by a tape") {
  const tg::Parameter<double> p(Array{1, 2});
  tg::Tape tape;
  Tensor x = p * 1.0;
  const Tensor before = x, square = x * x;
  x += Array{{10, 20}, {30, 40}};
  x *= 2;
  x -= before;
  CHECK(before.value() == Array{1, 2});
  CHECK(x.value() == Array{{21, 42}, {61, 82}});
  x += x;
  (tg::sum(x) + tg::sum(square)).backward();
  CHECK(p.grad() == Array{4 + 2, 4 + 4});
}
