#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <stdexcept>

#include "close.hpp"
#include "refused.hpp"
#include "special_values.hpp"
#include "threads.hpp"

namespace tg = tapegrad;

namespace {

template <class T> tg::Parameter<T> with_gradient(const tg::Array<T>& gradient) {
  tg::Parameter<T> parameter(tg::Array<T>(gradient.shape(), T(1)));
  parameter.set_grad(gradient);
  return parameter;
}

}  // namespace

// Results of PyTorch 1.13's clip_grad_norm_([a, b, c], 1.5) in double; c has no gradient.
TEST_CASE_TEMPLATE("Gradients are clipped as in PyTorch", T, float, double) {
  const double tolerance = std::is_same_v<T, float> ? 1e-6 : 1e-14;
  auto a = with_gradient<T>({{T(0.5), T(-1.25)}, {T(2), T(0.1)}}), b = with_gradient<T>({T(3), T(-0.7), T(1e-3)});
  tg::Parameter<T> c(tg::Array<T>{1, 2, 3});
  const tg::Parameters<T> parameters{a, b, c};
  const double norm = tg::grad_norm(parameters);
  CHECK(norm == doctest::Approx(3.9131190883999425).epsilon(tolerance));
  CHECK(b.grad() == tg::Array<T>{T(3), T(-0.7), T(1e-3)});
  CHECK(tg::clip_grad_norm(parameters, 1.5) == norm);
  check_close(a.grad(),
              tg::Array<double>{{0.19166291426202348, -0.47915728565505866}, {0.7666516570480939, 0.0383325828524047}},
              tolerance);
  check_close(b.grad(), tg::Array<double>{1.149977485572141, -0.26832807996683283, 0.00038332582852404696}, tolerance);
  CHECK(!c.has_grad());
  CHECK(a.value() == tg::Array<T>{{1, 1}, {1, 1}});
  CHECK(tg::clip_grad_norm(parameters, kInfinity) ==
        doctest::Approx(1.5 / (1 + 1e-6 / 3.9131190883999425)).epsilon(tolerance));
}

TEST_CASE("Gradients with a norm below the bound keep their bits") {
  auto p = with_gradient<float>({3.0F, 4.0F});
  const tg::Array<float>* before = &p.grad();
  CHECK(tg::clip_grad_norm(tg::Parameters<float>{p}, 5.1) == 5.0);
  CHECK(tg::clip_grad_norm(tg::Parameters<float>{p}, kInfinity) == 5.0);
  CHECK(p.grad() == tg::Array<float>{3.0F, 4.0F});
  CHECK(&p.grad() == before);
  CHECK(tg::clip_grad_norm(tg::Parameters<float>{p}, 5.0) == 5.0);  // equal to max_norm: scaled by 5 / (5 + 1e-6)
  check_close(p.grad(), tg::Array<double>{3, 4}, 1e-6);
  CHECK(tg::clip_grad_norm(tg::Parameters<float>{p}, 0.0) == doctest::Approx(5.0));
  CHECK(p.grad() == tg::Array<float>{0.0F, 0.0F});
}

TEST_CASE("Squares beyond float's range do not overflow, and the factor is accurate") {
  auto large = with_gradient<float>({3e30F, 4e30F}), largest = with_gradient<float>(tg::Array<float>({10'000}, 3e38F));
  CHECK(tg::clip_grad_norm(tg::Parameters<float>{large}, 1.0) == doctest::Approx(5e30).epsilon(1e-6));
  check_close(large.grad(), tg::Array<double>{0.6, 0.8}, 1e-6);
  CHECK(tg::clip_grad_norm(tg::Parameters<float>{largest}, 1.0) == doctest::Approx(3e40).epsilon(1e-6));
  CHECK(tg::clip_grad_norm(tg::Parameters<float>{largest}, 2.0) == doctest::Approx(1.0).epsilon(1e-6));

  auto small = with_gradient<float>({3e-30F, 4e-30F}), smallest = with_gradient<float>({1e-45F, 0.0F});
  CHECK(tg::clip_grad_norm(tg::Parameters<float>{small}, 1.0) / 5e-30 == doctest::Approx(1).epsilon(1e-6));
  CHECK(small.grad() == tg::Array<float>{3e-30F, 4e-30F});
  CHECK(tg::clip_grad_norm(tg::Parameters<float>{smallest}, 1.0) == static_cast<double>(1e-45F));
}

TEST_CASE("A non-finite norm is returned, and no gradient changes") {
  for (const double bad : {kInfinity, -kInfinity, kNaN}) {
    auto fine = with_gradient<double>({3.0, 4.0}), other = with_gradient<double>({0.0, bad});
    const double norm = tg::clip_grad_norm(tg::Parameters<double>{fine, other}, 1.0);
    CHECK((std::isnan(bad) ? std::isnan(norm) : norm == kInfinity));
    CHECK(fine.grad() == tg::Array<double>{3.0, 4.0});
  }
}

TEST_CASE("Frozen, empty and undefined parameters, and those without gradients, are skipped") {
  auto frozen = with_gradient<double>({100.0}), empty = with_gradient<double>(tg::Array<double>(tg::Shape{0, 3})),
       p = with_gradient<double>({6.0, 8.0});
  frozen.set_requires_grad(false);
  tg::Parameter<double> missing(tg::Array<double>{1.0}), none, none_either;
  CHECK(tg::clip_grad_norm(tg::Parameters<double>{frozen, empty, missing, p, none, none_either}, 1.0) == 10.0);
  check_close(p.grad(), tg::Array<double>{0.6, 0.8}, 1e-6);
  CHECK(!frozen.has_grad());
  CHECK(!missing.has_grad());
  CHECK(tg::clip_grad_norm(tg::Parameters<double>{empty, missing}, 0.0) == 0.0);
  CHECK(tg::clip_grad_norm(tg::Parameters<double>{}, 1.0) == 0.0);
}

TEST_CASE("An invalid bound and a duplicate parameter are refused, and no gradient changes") {
  auto p = with_gradient<float>({3.0F, 4.0F}), q = with_gradient<float>({1.0F});
  const tg::Parameters<float> parameters{p, q};
  check_refused("clip_grad_norm", "max_norm of 0 or more, got -1", [&] { tg::clip_grad_norm(parameters, -1.0); });
  check_refused("clip_grad_norm", "max_norm of 0 or more, got nan", [&] { tg::clip_grad_norm(parameters, kNaN); });
  p.set_name("head.weight");
  check_refused("clip_grad_norm", "head.weight", [&] { tg::clip_grad_norm(tg::Parameters<float>{p, q, p}, 1.0); });
  CHECK(p.grad() == tg::Array<float>{3.0F, 4.0F});
  CHECK(q.grad() == tg::Array<float>{1.0F});
}

TEST_CASE_TEMPLATE("grad_norm is the norm of the gradients there are, NaN or not, and refuses duplicates", T, float,
                   double) {
  auto a = with_gradient<T>({T(-2)}), bad = with_gradient<T>({T(kNaN)});
  tg::Parameter<T> missing(tg::Array<T>{1}), none;
  CHECK(tg::grad_norm(tg::Parameters<T>{a, missing, none}) == 2.0);
  CHECK(!missing.has_grad());
  CHECK(tg::grad_norm(tg::Parameters<T>{}) == 0.0);
  CHECK(std::isnan(tg::grad_norm(tg::Parameters<T>{bad})));
  check_refused("grad_norm", "twice, at indices 0 and 2", [&] { tg::grad_norm(tg::Parameters<T>{a, bad, a}); });
}

TEST_CASE("Other owners of a gradient keep its old numbers") {
  auto p = with_gradient<double>({3.0, 4.0});
  const std::shared_ptr<const tg::Array<double>> shared = tg::ParameterHandle(p).variable()->grad;
  tg::clip_grad_norm(tg::Parameters<double>{p}, 1.0);
  CHECK(*shared == tg::Array<double>{3.0, 4.0});
  check_close(p.grad(), tg::Array<double>{0.6, 0.8}, 1e-6);

  tg::Parameter<double> a(tg::Array<double>{1.0, 1.0}), b(tg::Array<double>{1.0, 1.0});
  {
    tg::Tape tape;
    tg::sum(a + b).backward();
  }
  tg::clip_grad_norm(tg::Parameters<double>{a}, 0.5);
  check_close(a.grad(), tg::Array<double>{0.5 / std::sqrt(2.0), 0.5 / std::sqrt(2.0)}, 1e-6);
  CHECK(b.grad() == tg::Array<double>{1.0, 1.0});
}

TEST_CASE("mutable_grad changes only this gradient, in place if it has no other owner") {
  auto p = with_gradient<double>({1.0, 2.0});
  const tg::Array<double>* before = &p.grad();
  p.mutable_grad()(0) = 5.0;
  CHECK(&p.grad() == before);
  CHECK(p.grad() == tg::Array<double>{5.0, 2.0});
  CHECK(p.value() == tg::Array<double>{1.0, 1.0});
  p.zero_grad();
  CHECK_THROWS_AS(p.mutable_grad(), std::logic_error);
  CHECK_THROWS_AS(tg::Parameter<double>().mutable_grad(), std::logic_error);
}

TEST_CASE_TEMPLATE("Ten million numbers have the same norm and gradients on any number of threads", T, float, double) {
  const std::size_t count = 10'000'019;
  const double expected = 0.01 * std::sqrt(static_cast<double>(count));
  double norms[2];
  tg::Array<T> clipped[2];
  for (const std::size_t threads : {1, 4}) {
    const Threads scope(threads);
    tg::Array<T> gradient({count}, T(0.01));
    gradient(count - 1) = T(-0.01);
    auto large = with_gradient<T>(gradient), small = with_gradient<T>(tg::Array<T>({17}, T(1e-3)));
    const std::size_t run = threads > 1;
    norms[run] = tg::clip_grad_norm(tg::Parameters<T>{large, small}, 1.0);
    clipped[run] = large.grad();
  }
  CHECK(norms[0] == norms[1]);
  CHECK(norms[0] == doctest::Approx(expected).epsilon(1e-6));
  CHECK(clipped[0] == clipped[1]);
  CHECK(static_cast<double>(clipped[0](0)) == doctest::Approx(0.01 / expected).epsilon(1e-6));
  CHECK(clipped[0](count - 1) == -clipped[0](0));
}
