/// The steps of every optimizer: its formula for all combinations of options, defaults, limits and refused options.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "every_optimizer.hpp"
#include "in_double.hpp"
#include "refused.hpp"
#include "special_values.hpp"
#include "stepped.hpp"

namespace {

#define OF_BOTH_TYPES OPTIMIZERS(float), OPTIMIZERS(double)

using doctest::Approx;

template <class Optimizer>
using Number = typename std::remove_cvref_t<decltype(std::declval<Optimizer>().parameters()[0]->value())>::value_type;

// All combinations of options that PyTorch accepts.
template <class Options> std::vector<Options> combinations() {
  std::vector<Options> all;
  if constexpr (std::is_same_v<Options, tg::SGDOptions>) {
    for (const double momentum : {0.0, 0.9})
      for (const double dampening : {0.0, 0.5})
        for (const double weight_decay : {0.0, 0.1})
          for (const bool nesterov : {false, true})
            if (!nesterov || (momentum > 0 && dampening == 0))
              all.push_back({0.1, momentum, dampening, weight_decay, nesterov});
  } else {
    for (const double lr : {0.01, 0.1})
      for (const std::array<double, 2>& betas : {std::array{0.0, 0.5}, std::array{0.9, 0.999}})
        for (const double eps : {0.1, 1e-8})
          for (const double weight_decay : {0.0, 0.1}) all.push_back({lr, betas, eps, weight_decay});
  }
  return all;
}

// The formulas as written in the headers and papers, for one element.
template <class Options> struct Formula {
  Options options;
  std::optional<double> b = {};
  double m = 0, v = 0;

  void operator()(double& p, double g, double t) {
    if constexpr (std::is_same_v<Options, tg::AdamWOptions>)
      p -= options.lr * options.weight_decay * p;
    else
      g += options.weight_decay * p;
    if constexpr (std::is_same_v<Options, tg::SGDOptions>) {
      b = b ? options.momentum * *b + (1 - options.dampening) * g : g;
      p -= options.lr * (options.nesterov ? g + options.momentum * *b : options.momentum == 0 ? g : *b);
    } else {
      const auto [beta1, beta2] = options.betas;
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      p -= options.lr * (m / (1 - std::pow(beta1, t))) / (std::sqrt(v / (1 - std::pow(beta2, t))) + options.eps);
    }
  }
};

// PyTorch 1.13's results in double for (1, -2) after three steps, for one combination of each optimizer:
//
//     p = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
//     o = torch.optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1)
//     for g in ([0.5, -1.0], [0.25, 2.0], [-3.0, 0.125]):
//         p.grad = torch.tensor(g, dtype=torch.float64)
//         o.step()
template <class Optimizer> void check_pytorch(const typename Optimizer::Options& options, const Array& expected) {
  const Course<double> course{{1, -2}, {{{0.5, -1}, {0.25, 2}, {-3, 0.125}}}};
  check_close(course.template stepped<Optimizer>(options), expected, 1e-15);
}

}  // namespace

TEST_CASE("Steps with all options match PyTorch") {
  check_pytorch<tg::SGD<double>>({.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1},
                                 {0.95037599999999989, -1.8438769999999998});
  check_pytorch<tg::SGD<double>>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
                                 {1.2572111460000002, -2.0666472920000003});
  check_pytorch<tg::Adam<double>>({.lr = 0.1, .weight_decay = 0.1}, {0.85031670786324876, -1.9423614580466217});
  check_pytorch<tg::AdamW<double>>({.lr = 0.1, .weight_decay = 0.1}, {0.8296170169624133, -1.9106556343413195});
}

TEST_CASE_TEMPLATE("Steps match the formula for every combination of options", Optimizer, OF_BOTH_TYPES) {
  using T = Number<Optimizer>;
  const Course<T> course{{1, -2}, {{{T(0.5), -1}, {T(0.25), 2}, {-3, T(0.125)}}}};
  int row = 0;
  for (const auto& options : combinations<typename Optimizer::Options>()) {
    INFO("row = ", row, ", options.lr = ", options.lr, ", options.weight_decay = ", options.weight_decay);
    check_steps<Optimizer, Formula<typename Optimizer::Options>>(options, std::vector{course}, 1e-6, 1e-15);
    ++row;
  }
}

TEST_CASE_TEMPLATE("All elements are updated alike, on all instruction sets and threads", Optimizer, OF_BOTH_TYPES) {
  using Options = typename Optimizer::Options;
  const auto all = courses<Number<Optimizer>>();
  const auto check = [&](const Options& options) { check_steps<Optimizer, Formula<Options>>(options, all); };
  if constexpr (is_sgd<Optimizer>) {
    check({.lr = 0.1, .weight_decay = 0.1});
    check({.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1});
    check({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  } else {
    check({.lr = 0.1, .eps = 1e-3, .weight_decay = 0.1});
  }
}

TEST_CASE("The defaults match PyTorch, with a learning rate for SGD, where PyTorch 1.13 has none") {
  const std::array betas{0.9, 0.999};
  CHECK((tg::SGDOptions().tapegrad_fields() == std::tuple(1e-3, 0, 0, 0, false)));
  CHECK((tg::AdamOptions().tapegrad_fields() == std::tuple(1e-3, betas, 1e-8, 0)));
  CHECK((tg::AdamWOptions().tapegrad_fields() == std::tuple(1e-3, betas, 1e-8, 0.01)));
}

TEST_CASE_TEMPLATE("The state has PyTorch's names, and exists from a parameter's first step on", Optimizer,
                   OPTIMIZERS(double)) {
  Parameter w(Array{1.0, -2.0});
  w.set_name("w");
  typename Optimizer::Options options{.weight_decay = 0};
  if constexpr (is_sgd<Optimizer>)
    options.momentum = 0.5;
  else
    options.betas = {0.5, 0.75};
  Optimizer optimizer({w}, options);
  const auto& state = optimizer.state().at("w");
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    if (step > 0) w.set_grad(step == 1 ? Array{2.0, -4.0} : Array{0.0, 0.0});  // none in the first
    optimizer.step();
    const auto check = [&](const auto& array, const Array& after_first, const Array& after_second) {
      CHECK(array.has_value() == (step > 0));
      if (step == 0) CHECK_THROWS_AS(array.value(), std::bad_optional_access);
      if (step > 0) check_close(array.value(), step == 1 ? after_first : after_second, 0.0);
    };
    if constexpr (is_sgd<Optimizer>) {
      check(state.momentum_buffer, {2.0, -4.0}, {1.0, -2.0});
    } else {
      CHECK(state.step == static_cast<std::size_t>(step));
      check(state.exp_avg, {1.0, -2.0}, {0.5, -1.0});
      check(state.exp_avg_sq, {1.0, 4.0}, {0.75, 3.0});
    }
  }
}

TEST_CASE_TEMPLATE("A non-finite or extreme gradient affects only its own element", Optimizer, OF_BOTH_TYPES) {
  using T = Number<Optimizer>;
  const T large(1e30), small(1e-20), tiny = std::numeric_limits<T>::denorm_min(), nan(kNaN), infinity(kInfinity);
  // Adam starts from 1. The square of 1e30 overflows a float: as in PyTorch, it does not change such an element.
  const std::vector<T> gradients{0, tiny, nan, infinity, small, large, 1};
  const std::vector<T> of_sgd{0, -tiny, nan, -infinity, -small, -large, -1},
      of_adam{1, 1, nan, nan, 1, std::is_same_v<T, float> ? T(1) : T(0.9), T(0.9)};
  std::vector rows{typename Optimizer::Options{.lr = is_sgd<Optimizer> ? 1 : 0.1, .weight_decay = 0}};
  if constexpr (is_sgd<Optimizer>) rows.push_back({.lr = 1, .momentum = 0.9});
  for (const auto set : tg::detail::instruction_sets())
    for (const auto& options : rows) {
      const UseInstructionSet use(set);
      tg::Parameter<T> p(tg::Array<T>(tg::Shape{40}, T(is_sgd<Optimizer> ? 0 : 1)));
      Optimizer optimizer({p}, options);
      tg::Array<T> g(tg::Shape{40}, T(1));
      std::copy(gradients.begin(), gradients.end(), g.begin());
      p.set_grad(g);
      optimizer.step();
      for (std::size_t i = 0; i < 40; ++i) {
        CAPTURE(i);
        const T expected = (is_sgd<Optimizer> ? of_sgd : of_adam)[std::min<std::size_t>(i, 6)], value = p.value()(i);
        const bool is_exact = is_sgd<Optimizer> || i < 2;
        CHECK(
            (std::isnan(expected) ? std::isnan(value) : value == expected || (!is_exact && value == Approx(expected))));
      }
      if constexpr (!is_sgd<Optimizer>)
        for (const std::size_t i : {0, 1}) CHECK(optimizer.state().at("0").exp_avg_sq.value()(i) == 0);
    }
}

TEST_CASE_TEMPLATE("Without eps Adam divides 0 by 0, as in PyTorch", T, float, double) {
  tg::Parameter<T> p(tg::Array<T>{0, 0});
  p.set_grad(tg::Array<T>{0, 1});
  tg::Adam<T>({p}, {.lr = 1, .eps = 0}).step();
  CHECK(std::isnan(p.value()(0)));
  CHECK(p.value()(1) == doctest::Approx(-1));
}

TEST_CASE_TEMPLATE(
    "Without weight decay an infinite element stays infinite and does not spoil the state, as in PyTorch", Optimizer,
    OPTIMIZERS(float)) {
  for (const auto& options : combinations<typename Optimizer::Options>()) {
    if (options.weight_decay > 0) continue;
    tg::Parameter<float> p(tg::Array<float>{1, static_cast<float>(-kInfinity)});
    Optimizer optimizer({p}, options);
    p.set_grad(tg::Array<float>{1, 1});
    optimizer.step();
    CHECK(p.value()(1) == -kInfinity);
    if constexpr (!is_sgd<Optimizer>)
      check_close(optimizer.state().at("0").exp_avg.value(), Array({2}, 1 - options.betas[0]), 1e-6);
  }
}

TEST_CASE("After a million steps bias correction has ended, and new gradients count as in PyTorch") {
  // As above with the first gradient; then o.state[p]['step'] += 999998; then the other two, with lr=0.1.
  const auto late = []<class Optimizer>(std::type_identity<Optimizer>) {
    Parameter p(Array{1.0, -2.0});
    Optimizer optimizer({p}, {.lr = 0.1});
    p.set_grad(Array{0.5, -1.0});
    optimizer.step();
    std::get<1>(optimizer.tapegrad_fields()).at("0").step += 999'998;  // like loading a file
    for (const Array& g : {Array{0.25, 2.0}, Array{-3.0, 0.125}}) {
      p.set_grad(g);
      optimizer.step();
    }
    return p.value();
  };
  check_close(late(std::type_identity<tg::Adam<double>>()), Array{0.74946188882161591, -2.2131122509016978}, 1e-15);
  check_close(late(std::type_identity<tg::AdamW<double>>()), Array{0.74706092587792061, -2.207162569871159}, 1e-15);
}

TEST_CASE_TEMPLATE("Options out of range are refused by name and value", Optimizer, OPTIMIZERS(double)) {
  using Options = typename Optimizer::Options;
  const char* const name = is_sgd<Optimizer> ? "SGD" : std::is_same_v<Options, tg::AdamOptions> ? "Adam" : "AdamW";
  Parameter p(Array{1.0}), undefined;
  const auto check = [&](const Options& options, const std::string& words) {
    check_refused(name, words, [&] { Optimizer({p}, options); });
  };
  std::vector<std::pair<std::string, double Options::*>> fields{{"lr", &Options::lr},
                                                                {"weight_decay", &Options::weight_decay}};
  if constexpr (std::is_same_v<Options, tg::SGDOptions>) {
    fields.emplace_back("momentum", &Options::momentum);
    fields.emplace_back("dampening", &Options::dampening);
    check({.nesterov = true}, "momentum above 0 and dampening 0 with nesterov, got momentum 0 and dampening 0");
    check({.momentum = 0.9, .dampening = 0.1, .nesterov = true}, "with nesterov, got momentum 0.9 and dampening 0.1");
  } else {
    fields.emplace_back("eps", &Options::eps);
    check({.betas = {1, 0.5}}, "betas in [0, 1), got 1 and 0.5");
    for (const double beta : {-0.1, 1.0, 1.5, kNaN}) {
      check({.betas = {beta, 0}}, "betas in [0, 1), got ");
      check({.betas = {0, beta}}, "betas in [0, 1), got 0 and ");
    }
    CHECK_NOTHROW(Optimizer({p}, {.lr = 0, .betas = {0, 0}, .eps = 0, .weight_decay = 0}));
  }
  Optimizer optimizer({p}, {.lr = 0.5});
  for (const double bad : {-0.1, kNaN, kInfinity}) {
    const std::string words = " of 0 or more, got " + std::string(bad < 0 ? "-0.1" : std::isnan(bad) ? "nan" : "inf");
    for (const auto& field : fields) {
      Options options;
      options.*field.second = bad;
      check(options, "a finite " + field.first + words);
    }
    check_refused(name, "a finite lr" + words, [&] { optimizer.set_lr(bad); });
    CHECK(optimizer.lr() == 0.5);
  }

  const auto check_parameters = [&](const tg::Parameters<double>& parameters, const std::string& words) {
    check_refused(name, words, [&] { Optimizer{parameters}; });
  };
  check_parameters({}, "parameters, got none");
  check_parameters({p, undefined}, "parameters with a value, got an undefined one at index 1");
  check_parameters({p, p}, "each parameter once, got (1) twice, at indices 0 and 1");
  CHECK_THROWS_AS(Optimizer(tg::Parameters<double>{static_cast<Parameter*>(nullptr)}), std::invalid_argument);
}
