#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "close.hpp"

namespace tg = tapegrad;

namespace {

struct Expected {
  tg::SGDOptions options;
  tg::Array<double> value;
};

// What PyTorch 1.13 makes of (1, -2) by three steps, printed with 17 digits:
//
//     for m, d, w, n in itertools.product([0, 0.9], [0, 0.5], [0, 0.1], [False, True]):
//         p = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
//         o = torch.optim.SGD([p], lr=0.1, momentum=m, dampening=d, weight_decay=w, nesterov=n)
//         for g in ([0.5, -1.0], [0.25, 2.0], [-3.0, 0.125]):
//             p.grad = torch.tensor(g, dtype=torch.float64)
//             o.step()
//
// without the combinations of nesterov that PyTorch refuses.
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

}  // namespace

TEST_CASE_TEMPLATE("SGD's steps are PyTorch's for every combination of options", T, float, double) {
  for (const Expected& expected : pytorch()) {
    CAPTURE(expected.options.momentum);
    CAPTURE(expected.options.dampening);
    CAPTURE(expected.options.weight_decay);
    CAPTURE(expected.options.nesterov);
    tg::Parameter<T> p(tg::Array<T>{1, -2});
    tg::SGD<T> optimizer({p}, expected.options);
    for (const tg::Array<T>& g : {tg::Array<T>{T(0.5), -1}, tg::Array<T>{T(0.25), 2}, tg::Array<T>{-3, T(0.125)}}) {
      p.set_grad(g);
      optimizer.step();
    }
    check_close(p.value(), expected.value, std::is_same_v<T, float> ? 1e-6 : 1e-15);
  }
}

TEST_CASE("A parameter so large that threads share it is stepped everywhere alike") {
  const std::size_t size = 100'003;
  const tg::SGDOptions plain{.lr = 0.1, .weight_decay = 0.1};
  const tg::SGDOptions heavy{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true};
  for (const tg::SGDOptions& options : {plain, heavy}) {
    tg::Parameter<double> small(tg::Array<double>{2.0}), large(tg::Array<double>(tg::Shape{size}, 2.0));
    tg::SGD<double> optimizer({small, large}, options);
    for (const double g : {1.0, -3.0}) {
      small.set_grad(tg::Array<double>{g});
      large.set_grad(tg::Array<double>(tg::Shape{size}, g));
      optimizer.step();
    }
    check_close(large.value(), tg::Array<double>(tg::Shape{size}, small.item()), 1e-15);
  }
}

TEST_CASE("SGD leaves parameters without a gradient, and their momentum, as they are") {
  tg::Parameter<double> seen(tg::Array<double>{1.0}), unseen(tg::Array<double>{1.0});
  tg::SGD<double> optimizer({seen, unseen}, {.lr = 0.5, .momentum = 0.5, .weight_decay = 0.5});
  seen.set_grad(tg::Array<double>{1.0});
  optimizer.step();
  CHECK(seen.item() == 0.25);
  CHECK(unseen.item() == 1.0);

  optimizer.zero_grad();
  CHECK(!seen.has_grad());
  unseen.set_grad(tg::Array<double>{2.0});
  optimizer.step();  // a first step: the momentum is the gradient, 2.5 with the decay
  CHECK(seen.item() == 0.25);
  CHECK(unseen.item() == -0.25);
}

TEST_CASE("SGD's learning rate can be changed between steps") {
  tg::Parameter<float> p(tg::Array<float>{1.0f});
  tg::SGD<float> optimizer({p}, {.lr = 0.5});
  CHECK(optimizer.lr() == 0.5);
  optimizer.set_lr(0.25);
  CHECK(optimizer.lr() == 0.25);
  p.set_grad(tg::Array<float>{2.0f});
  optimizer.step();
  CHECK(p.item() == 0.5f);
  CHECK(tg::SGD<float>({p}).lr() == 1e-3);
}

TEST_CASE("SGD changes a parameter, not its copies or what a tape has saved") {
  tg::Linear<double> model(2, 1), copy = model;
  const double before = model.weight.value()(0, 0);
  tg::SGD<double> optimizer(tg::parameters(model), {.lr = 1});
  tg::Tape tape;
  const tg::Tensor<double> squares = tg::sum(model.weight * model.weight);
  model.weight.set_grad(tg::Array<double>{{1.0, 1.0}});
  optimizer.step();
  CHECK(model.weight.value()(0, 0) == before - 1);
  CHECK(copy.weight.value()(0, 0) == before);
  model.weight.zero_grad();
  squares.backward();
  CHECK(model.weight.grad()(0, 0) == doctest::Approx(2 * before));
}

TEST_CASE("A step without momentum takes no memory") {
  tg::Parameter<float> p(tg::Array<float>(tg::Shape{1000}, 1.0f));
  p.set_grad(p.value());
  tg::SGD<float> optimizer({p}, {.lr = 0.1});
  const float* place = p.value().data();
  const std::ptrdiff_t blocks = tg::pool_blocks_in_use();
  optimizer.step();
  CHECK(p.value().data() == place);
  CHECK(tg::pool_blocks_in_use() == blocks);
}

TEST_CASE("SGD refuses options that are negative or not finite, by name and value") {
  tg::Parameter<float> p(tg::Array<float>{1.0f});
  const auto sgd = [&](const tg::SGDOptions& options) { return tg::SGD<float>({p}, options); };
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS(sgd({.lr = -0.1}), "[SGD] expected lr of 0 or more, given -0.1", std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.lr = nan}), "[SGD] expected lr of 0 or more, given nan", std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.lr = infinity}), "[SGD] expected lr of 0 or more, given inf", std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.momentum = -1}), "[SGD] expected momentum of 0 or more, given -1", std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.dampening = nan}), "[SGD] expected dampening of 0 or more, given nan",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(sgd({.weight_decay = -1}), "[SGD] expected weight_decay of 0 or more, given -1",
                       std::invalid_argument);
  const char* message =
      "[SGD] expected momentum above 0 and no dampening for nesterov, given momentum 0 and dampening 0";
  CHECK_THROWS_WITH_AS(sgd({.nesterov = true}), message, std::invalid_argument);
  CHECK_THROWS_AS(sgd({.momentum = 0.9, .dampening = 0.1, .nesterov = true}), std::invalid_argument);

  tg::SGD<float> optimizer({p}, {.lr = 0.5});
  CHECK_THROWS_AS(optimizer.set_lr(nan), std::invalid_argument);
  CHECK(optimizer.lr() == 0.5);
}

TEST_CASE("SGD refuses parameters that are none, undefined, or there twice") {
  tg::Parameter<float> p(tg::Array<float>{1.0f}), undefined;
  using Parameters = tg::Parameters<float>;
  CHECK_THROWS_WITH_AS(tg::SGD<float>(Parameters{}), "[SGD] expected parameters, given none", std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::SGD<float>(Parameters{p, undefined}),
                       "[SGD] expected parameters with a value, given one without", std::invalid_argument);
  CHECK_THROWS_AS(tg::SGD<float>(Parameters{static_cast<tg::Parameter<float>*>(nullptr)}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::SGD<float>(Parameters{p, p}), "[SGD] expected each parameter once, given (1) twice",
                       std::invalid_argument);
}

TEST_CASE("A parameter that its model gave up for another is refused before any parameter changes") {
  tg::Parameter<double> a(tg::Array<double>{1.0}), b(tg::Array<double>{1.0});
  tg::SGD<double> optimizer({a, b}, {.lr = 0.5, .momentum = 0.5});
  b.set_name("head.bias");
  a.set_grad(tg::Array<double>{1.0});
  b = tg::Parameter<double>(tg::Array<double>{1.0, 2.0});
  CHECK_THROWS_WITH_AS(optimizer.step(),
                       "[SGD] expected parameters of a model, but head.bias (1) belongs to none any more: its model "
                       "ended, or was assigned another in its stead",
                       std::logic_error);
  CHECK(a.item() == 1.0);
}

TEST_CASE("An optimizer follows its parameters where their model goes") {
  const auto train = [](tg::SGD<double>& optimizer, const tg::Linear<double>& layer) {
    const tg::Tape tape;
    optimizer.zero_grad();
    tg::sum(layer(tg::Array<double>{{1.0, 1.0}})).backward();
    optimizer.step();
  };
  std::vector<tg::Linear<double>> layers;
  layers.emplace_back(2, 2);
  tg::SGD<double> optimizer(tg::parameters(layers[0]), {.lr = 1.0});
  for (int i = 0; i < 10; ++i) layers.emplace_back(2, 2);
  tg::Array<double> expected = layers[0].weight.value() - 1.0;
  train(optimizer, layers[0]);
  check_close(layers[0].weight.value(), expected, 0.0);

  tg::Linear<double> moved = std::move(layers[0]);
  expected = moved.weight.value() - 1.0;
  train(optimizer, moved);
  check_close(moved.weight.value(), expected, 0.0);

  tg::Linear<double> assigned(2, 2);
  assigned = std::move(moved);
  expected = assigned.weight.value() - 1.0;
  train(optimizer, assigned);
  check_close(assigned.weight.value(), expected, 0.0);

  assigned = tg::Linear<double>(2, 2);  // which nobody else holds: its numbers move in
  expected = assigned.weight.value() - 1.0;
  train(optimizer, assigned);
  check_close(assigned.weight.value(), expected, 0.0);
  CHECK(assigned.weight.name() == "weight");

  const tg::Linear<double> other(2, 2);
  assigned = other;
  expected = other.weight.value() - 1.0;
  train(optimizer, assigned);
  check_close(assigned.weight.value(), expected, 0.0);
}

TEST_CASE("A model trained by SGD comes to fit its data") {
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
