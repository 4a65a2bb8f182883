#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "refused.hpp"
#include "special_values.hpp"

namespace tg = tapegrad;

namespace {

constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();

const std::vector<std::pair<double, std::string>> kBad{{-1, "-1"}, {kNaN, "nan"}, {kInfinity, "inf"}};

void check_rates(const tg::Schedule& rate, const std::vector<double>& expected) {
  for (std::size_t step = 0; step < expected.size(); ++step) {
    CAPTURE(step);
    CHECK(std::abs(rate(step) - expected[step]) <= 1e-15);
  }
}

}  // namespace

// The learning rates of torch.optim.SGD([p], lr=0.1) in PyTorch 1.13, before each step, with
//     StepLR(optimizer, step_size=3, gamma=0.5)
//     LinearLR(optimizer, start_factor=1.0, end_factor=0.1, total_iters=6)
//     CosineAnnealingLR(optimizer, T_max=6, eta_min=0.01)
TEST_CASE("The decays match PyTorch's schedulers") {
  check_rates(tg::step_decay({.peak = 0.1, .factor = 0.5, .every = 3}),
              {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125});
  check_rates(tg::linear_decay({.peak = 0.1, .floor = 0.01, .steps = 6}),
              {0.1, 0.085, 0.07, 0.05500000000000001, 0.04000000000000001, 0.025000000000000005, 0.010000000000000002,
               0.010000000000000002, 0.010000000000000002});
  check_rates(tg::cosine_decay({.peak = 0.1, .floor = 0.01, .steps = 6}),
              {0.1, 0.09397114317029975, 0.07750000000000001, 0.055000000000000014, 0.032500000000000015,
               0.01602885682970026, 0.01});
}

TEST_CASE("Warm-up rises to the peak, and the cosine falls from there to the floor") {
  const auto rate = tg::warmup_cosine({.peak = 1e-2, .floor = 1e-3, .warmup = 10, .steps = 100});
  for (std::size_t t = 0; t < 10; ++t)
    CHECK(rate(t) == doctest::Approx(1e-2 * static_cast<double>(t + 1) / 11).epsilon(1e-14));
  CHECK(std::abs(rate(10) - 1e-2) < 1e-12);
  CHECK(std::abs(rate(25) - (1e-3 + 9e-3 * (1 + std::sqrt(3.0) / 2) / 2)) < 1e-12);  // a sixth of pi
  CHECK(std::abs(rate(40) - (1e-3 + 9e-3 * 0.75)) < 1e-12);                          // a third
  CHECK(std::abs(rate(55) - (1e-3 + 9e-3 * 0.5)) < 1e-12);
  CHECK(std::abs(rate(70) - (1e-3 + 9e-3 * 0.25)) < 1e-12);
  CHECK(rate(99) > 1e-3);
  CHECK(rate(100) == 1e-3);
  CHECK(rate(1000) == 1e-3);
  for (std::size_t t = 10; t < 100; ++t) CHECK(rate(t) > rate(t + 1));

  const auto without = tg::warmup_cosine({.peak = 0.5, .floor = 0.125, .steps = 8});
  const auto cosine = tg::cosine_decay({.peak = 0.5, .floor = 0.125, .steps = 8});
  for (std::size_t t = 0; t < 10; ++t) CHECK(without(t) == cosine(t));
}

TEST_CASE("A schedule is a value without references to its options, and takes steps in any order") {
  tg::Schedule rate = tg::constant(0.25);
  CHECK(rate(0) == 0.25);
  CHECK(rate(kMax) == 0.25);
  rate = tg::step_decay({.peak = 1, .factor = 0.5, .every = 2});
  const tg::Schedule copy = rate;
  CHECK(copy(5) == 0.25);
  CHECK(copy(0) == 1);
  CHECK(copy(3) == 0.5);
}

TEST_CASE("The largest step numbers and lengths do not overflow") {
  CHECK(tg::step_decay({.peak = 1, .factor = 0.5, .every = 1})(kMax) == 0);
  CHECK(tg::step_decay({.peak = 1, .factor = 1, .every = 1})(kMax) == 1);
  CHECK(tg::step_decay({.peak = 1, .factor = 0.5, .every = kMax})(kMax - 1) == 1);
  CHECK(tg::step_decay({.peak = 1, .factor = 0.5, .every = kMax})(kMax) == 0.5);
  CHECK(tg::step_decay({.peak = 1, .factor = 0, .every = 3})(2) == 1);
  CHECK(tg::step_decay({.peak = 1, .factor = 0, .every = 3})(3) == 0);
  for (const auto& make : {tg::linear_decay, tg::cosine_decay}) {
    CHECK(make({.peak = 1, .floor = 0.5, .steps = 1})(0) == 1);
    CHECK(make({.peak = 1, .floor = 0.5, .steps = 1})(1) == 0.5);
    CHECK(make({.peak = 1, .floor = 0.5, .steps = 1})(kMax) == 0.5);
    CHECK(make({.peak = 1, .floor = 0, .steps = kMax})(kMax / 2) == doctest::Approx(0.5));
    CHECK(make({.peak = 1, .floor = 0, .steps = kMax})(kMax) == 0);
    CHECK(make({.peak = 0.5, .floor = 0.5, .steps = 3})(2) == 0.5);
    CHECK(make({.peak = 1e308, .floor = 1e308, .steps = 3})(2) == 1e308);
  }
  const auto all_warmup = tg::warmup_cosine({.peak = 1, .floor = 0.25, .warmup = kMax, .steps = kMax});
  CHECK(all_warmup(0) > 0);
  CHECK(all_warmup(kMax / 2) == doctest::Approx(0.5));
  CHECK(all_warmup(kMax - 1) == doctest::Approx(1));
  CHECK(all_warmup(kMax) == 0.25);
}

TEST_CASE("Invalid schedule options are refused with their name and value") {
  const auto check_decay = [](const std::string& name, const auto& make, auto options) {
    options.peak = 1;
    check_refused(name, "steps of 1 or more, got 0", [&] { make(options); });
    options.steps = 5;
    options.floor = 2;
    check_refused(name, "got floor 2 and peak 1", [&] { make(options); });
    for (const auto& [bad, given] : kBad) {
      options.peak = bad;
      options.floor = 0;
      check_refused(name, "peak of 0 or more, got " + given, [&] { make(options); });
      std::swap(options.peak, options.floor);
      check_refused(name, "floor of 0 or more, got " + given, [&] { make(options); });
    }
  };
  check_decay("linear_decay", tg::linear_decay, tg::DecayOptions());
  check_decay("cosine_decay", tg::cosine_decay, tg::DecayOptions());
  check_decay("warmup_cosine", tg::warmup_cosine, tg::WarmupCosineOptions());
  for (const auto& row : kBad) {
    const double bad = row.first;
    check_refused("constant", "got " + row.second, [&] { tg::constant(bad); });
    check_refused("step_decay", "peak of 0 or more, got " + row.second,
                  [&] { tg::step_decay({.peak = bad, .every = 1}); });
  }
  for (const double factor : {-0.5, 1.5, kNaN})
    check_refused("step_decay", "factor in [0, 1], got ", [&] { tg::step_decay({.factor = factor, .every = 1}); });
  check_refused("step_decay", "every of 1 or more, got 0", [] { tg::step_decay({.peak = 1}); });
  check_refused("warmup_cosine", "warmup of at most 5 steps, got 6",
                [] { tg::warmup_cosine({.peak = 1, .warmup = 6, .steps = 5}); });
}
