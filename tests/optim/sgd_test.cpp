#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "in_double.hpp"
#include "stepped.hpp"

namespace {

struct Expected {
  tg::SGDOptions options;
  Array value;
};

// PyTorch 1.13's results for (1, -2) after three steps, printed with 17 digits:
//
//     for m, d, w, n in itertools.product([0, 0.9], [0, 0.5], [0, 0.1], [False, True]):
//         p = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
//         o = torch.optim.SGD([p], lr=0.1, momentum=m, dampening=d, weight_decay=w, nesterov=n)
//         for g in ([0.5, -1.0], [0.25, 2.0], [-3.0, 0.125]):
//             p.grad = torch.tensor(g, dtype=torch.float64)
//             o.step()
//
// without the combinations with nesterov rejected by PyTorch.
std::vector<Expected> pytorch() {
  return {
      {{.lr = 0.1}, {1.2249999999999999, -2.1125000000000003}},
      {{.lr = 0.1, .weight_decay = 0.1}, {1.1965440000000001, -2.0530879999999998}},
      {{.lr = 0.1, .dampening = 0.5}, {1.2249999999999999, -2.1125000000000003}},
      {{.lr = 0.1, .dampening = 0.5, .weight_decay = 0.1}, {1.1965440000000001, -2.0530879999999998}},
      {{.lr = 0.1, .momentum = 0.9}, {1.117, -2.1214999999999997}},
      {{.lr = 0.1, .momentum = 0.9, .nesterov = true}, {1.3303, -2.2218499999999999}},
      {{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1}, {1.0635239999999999, -2.0120480000000001}},
      {{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}, {1.2572111460000002, -2.0666472920000003}},
      {{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}, {0.99075000000000002, -1.9252499999999999}},
      {{.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1}, {0.95037599999999989, -1.8438769999999998}},
  };
}

// The formula in sgd.hpp.
struct Formula {
  tg::SGDOptions options;
  std::optional<double> b = {};

  void operator()(double& p, double g, double) {
    g += options.weight_decay * p;
    b = b ? options.momentum * *b + (1 - options.dampening) * g : g;
    p -= options.lr * (options.nesterov ? g + options.momentum * *b : options.momentum == 0 ? g : *b);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("SGD's steps match PyTorch for every combination of options", T, float, double) {
  for (const Expected& expected : pytorch()) {
    CAPTURE(expected.options.momentum);
    CAPTURE(expected.options.dampening);
    CAPTURE(expected.options.weight_decay);
    CAPTURE(expected.options.nesterov);
    const Course<T> course{{1, -2}, {{{T(0.5), -1}, {T(0.25), 2}, {-3, T(0.125)}}}};
    const auto value = course.template stepped<tg::SGD<T>>(expected.options);
    check_close(value, expected.value, std::is_same_v<T, float> ? 1e-6 : 1e-15);
  }
}

TEST_CASE_TEMPLATE("SGD updates all elements alike, on all instruction sets and threads", T, float, double) {
  const auto all = courses<T>();
  for (const tg::SGDOptions& options :
       {tg::SGDOptions{.lr = 0.1, .weight_decay = 0.1},
        tg::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1},
        tg::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}})
    check_steps<tg::SGD<T>, Formula>(options, all);
}

TEST_CASE("SGD's defaults match PyTorch, except for the learning rate that PyTorch 1.13 requires") {
  const tg::SGDOptions options;
  CHECK(options.lr == 1e-3);
  CHECK(options.momentum == 0);
  CHECK(options.dampening == 0);
  CHECK(options.weight_decay == 0);
  CHECK_FALSE(options.nesterov);
}

TEST_CASE("SGD has a momentum_buffer only with momentum, from a parameter's first step on") {
  Parameter w(Array{1.0});
  w.set_name("w");
  tg::SGD<double> plain({w}), heavy({w}, {.momentum = 0.5});
  CHECK_FALSE(heavy.state().at("w").momentum_buffer.has_value());
  w.set_grad(Array{2.0});
  plain.step();
  heavy.step();
  CHECK_FALSE(plain.state().at("w").momentum_buffer.has_value());
  check_close(heavy.state().at("w").momentum_buffer.value(), Array{2.0}, 0.0);
}

TEST_CASE_TEMPLATE("A non-finite or extreme gradient affects only its own element", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN(), tiny = std::numeric_limits<T>::denorm_min();
  for (const auto set : tg::detail::instruction_sets())
    for (const double momentum : {0.0, 0.9}) {
      const UseInstructionSet use(set);
      tg::Parameter<T> p(tg::Array<T>(tg::Shape{40}, T(0)));
      tg::SGD<T> optimizer({p}, {.lr = 1, .momentum = momentum});
      tg::Array<T> g(tg::Shape{40}, T(1));
      g(0) = 0, g(1) = T(1e30), g(2) = tiny, g(3) = nan;
      p.set_grad(g);
      optimizer.step();
      CHECK(p.value()(0) == 0);
      CHECK(p.value()(1) == T(-1e30));
      CHECK(p.value()(2) == -tiny);
      CHECK(std::isnan(p.value()(3)));
      for (std::size_t i = 4; i < 40; ++i) CHECK(p.value()(i) == -1);
    }
}

TEST_CASE("Without weight decay SGD leaves an infinite element infinite, as in PyTorch") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const tg::SGDOptions& options :
       {tg::SGDOptions{}, tg::SGDOptions{.momentum = 0.9}, tg::SGDOptions{.momentum = 0.9, .nesterov = true}}) {
    tg::Parameter<float> p(tg::Array<float>{1, -infinity});
    tg::SGD<float> optimizer({p}, options);
    p.set_grad(tg::Array<float>{1, 1});
    optimizer.step();
    CHECK(p.value()(1) == -infinity);
  }
}

TEST_CASE("SGD's step without momentum allocates no memory") {
  tg::Parameter<float> p(tg::Array<float>(tg::Shape{1000}, 1.0f));
  p.set_grad(p.value());
  tg::SGD<float> optimizer({p}, {.lr = 0.1});
  const float* place = p.value().data();
  const std::ptrdiff_t blocks = tg::pool_blocks_in_use();
  optimizer.step();
  CHECK(p.value().data() == place);
  CHECK(tg::pool_blocks_in_use() == blocks);
}

TEST_CASE("SGD refuses negative and non-finite options by name and value") {
  tg::Parameter<float> p(tg::Array<float>{1.0f});
  const auto sgd = [&](const tg::SGDOptions& options) { return tg::SGD<float>({p}, options); };
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS(sgd({.lr = -0.1}), "[SGD] expected a finite lr of 0 or more, got -0.1", std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.lr = nan}), "[SGD] expected a finite lr of 0 or more, got nan", std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.lr = infinity}), "[SGD] expected a finite lr of 0 or more, got inf",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.momentum = -1}), "[SGD] expected a finite momentum of 0 or more, got -1",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.dampening = nan}), "[SGD] expected a finite dampening of 0 or more, got nan",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.weight_decay = -1}), "[SGD] expected a finite weight_decay of 0 or more, got -1",
                       std::invalid_argument);
  const char* message = "[SGD] expected momentum above 0 and dampening 0 with nesterov, got momentum 0 and dampening 0";
  CHECK_THROWS_WITH_AS(sgd({.nesterov = true}), message, std::invalid_argument);
  CHECK_THROWS_AS(sgd({.momentum = 0.9, .dampening = 0.1, .nesterov = true}), std::invalid_argument);

  tg::SGD<float> optimizer({p}, {.lr = 0.5});
  CHECK_THROWS_AS(optimizer.set_lr(nan), std::invalid_argument);
  CHECK(optimizer.lr() == 0.5);
}

TEST_CASE("Training with SGD fits a model to its data") {
  tg::manual_seed(1);
  const tg::Linear<float> truth(2, 1);
  tg::Linear<float> model(2, 1);
  const tg::Tensor<float> x(tg::normal<float>({64, 2})), y = truth(x);
  tg::SGD<float> optimizer(tg::parameters(model), {.lr = 0.05, .momentum = 0.9, .nesterov = true});
  for (int step = 0; step < 200; ++step) {
    tg::Tape tape;
    optimizer.zero_grad();
    tg::mse_loss(model(x), y).backward();
    optimizer.step();
  }
  check_close(model.weight.value(), truth.weight.value(), 1e-5);
  check_close(model.bias.value(), truth.bias.value(), 1e-5);
}
