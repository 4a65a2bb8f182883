#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "in_double.hpp"
#include "stepped.hpp"

namespace {

// PyTorch 1.13's results for (1, -2) after three steps, printed with 17 digits:
//
//     for r, b, e, w in itertools.product([0.1, 0.01], [(0.9, 0.999), (0, 0.5)], [1e-8, 0.1], [0, 0.1]):
//         p = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
//         o = torch.optim.Adam([p], lr=r, betas=b, eps=e, weight_decay=w)
//         for g in ([0.5, -1.0], [0.25, 2.0], [-3.0, 0.125]):
//             p.grad = torch.tensor(g, dtype=torch.float64)
//             o.step()
//
// and the same with torch.optim.AdamW.
const std::vector<Array> kAdam{{0.85639583738698799, -1.9684337378859402}, {0.85031670786324876, -1.9423614580466217},
                               {0.88922228876933862, -1.9730625288330619}, {0.87818623044657085, -1.9471940092684261},
                               {0.96089322961110146, -2.0264559384347578}, {0.95456385988658521, -2.0037828002716727},
                               {0.9876196881255187, -2.0283565554975258},  {0.97709961000400769, -2.005657832622588},
                               {0.98563958373869875, -1.996843373788594},  {0.98496596341523113, -1.9941758621457017},
                               {0.98892222887693393, -1.9973062528833063}, {0.98776055097793625, -1.9946668633189089},
                               {0.99608932296111019, -2.002645593843476},  {0.99533123279070168, -2.0003745658445893},
                               {0.99876196881255186, -2.0028356555497528}, {0.99760947877023121, -2.0005619484942567}};
const std::vector<Array> kAdamW{{0.85639583738698799, -1.9684337378859402}, {0.8296170169624133, -1.9106556343413195},
                                {0.88922228876933862, -1.9730625288330619}, {0.86192356832794326, -1.9151252902564309},
                                {0.96089322961110146, -2.0264559384347578}, {0.93388933633248794, -1.9678892378831452},
                                {0.9876196881255187, -2.0283565554975258},  {0.96012822448188084, -1.9696719736256341},
                                {0.98563958373869875, -1.996843373788594},  {0.98267189453445125, -1.9908657007531469},
                                {0.98892222887693393, -1.9973062528833063}, {0.98594932567251992, -1.9913269803157219},
                                {0.99608932296111019, -2.002645593843476},  {0.99311938302832226, -1.9966600348379586},
                                {0.99876196881255186, -2.0028356555497528}, {0.99578713817611542, -1.9968489095492155}};

template <class Optimizer> void check_pytorch(const std::vector<Array>& figures) {
  using T = typename std::remove_cvref_t<decltype(Optimizer::State::exp_avg.value())>::value_type;
  auto expected = figures.begin();
  for (const double lr : {0.1, 0.01})
    for (const std::array<double, 2>& betas : {std::array{0.9, 0.999}, std::array{0.0, 0.5}})
      for (const double eps : {1e-8, 0.1})
        for (const double weight_decay : {0.0, 0.1}) {
          CAPTURE(lr);
          CAPTURE(betas[0]);
          CAPTURE(eps);
          CAPTURE(weight_decay);
          const Course<T> course{{1, -2}, {{{T(0.5), -1}, {T(0.25), 2}, {-3, T(0.125)}}}};
          const auto value = course.template stepped<Optimizer>({lr, betas, eps, weight_decay});
          check_close(value, *expected++, std::is_same_v<T, float> ? 1e-6 : 1e-15);
        }
  CHECK(expected == figures.end());
}

// The formulas as written in the papers.
template <class Options, bool is_adamw> struct Formula {
  Options options;
  double m = 0, v = 0;

  void operator()(double& p, double g, double t) {
    const auto [beta1, beta2] = options.betas;
    if (is_adamw)
      p -= options.lr * options.weight_decay * p;
    else
      g += options.weight_decay * p;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    p -= options.lr * (m / (1 - std::pow(beta1, t))) / (std::sqrt(v / (1 - std::pow(beta2, t))) + options.eps);
  }
};

template <class T> const T kNaN = std::numeric_limits<T>::quiet_NaN();
template <class T> const T kInfinity = std::numeric_limits<T>::infinity();

}  // namespace

TEST_CASE_TEMPLATE("Adam's and AdamW's steps match PyTorch for every combination of options", T, float, double) {
  check_pytorch<tg::Adam<T>>(kAdam);
  check_pytorch<tg::AdamW<T>>(kAdamW);
}

TEST_CASE_TEMPLATE("Adam and AdamW update all elements alike, on all instruction sets and threads", T, float, double) {
  const auto all = courses<T>();
  check_steps<tg::Adam<T>, Formula<tg::AdamOptions, false>>({.lr = 0.1, .eps = 1e-3, .weight_decay = 0.1}, all);
  check_steps<tg::AdamW<T>, Formula<tg::AdamWOptions, true>>({.lr = 0.1, .eps = 1e-3, .weight_decay = 0.1}, all);
}

TEST_CASE("The defaults of Adam and AdamW match PyTorch") {
  const tg::AdamOptions adam;
  const tg::AdamWOptions adamw;
  CHECK(adam.lr == 1e-3);
  CHECK(adam.betas == std::array{0.9, 0.999});
  CHECK(adam.eps == 1e-8);
  CHECK(adam.weight_decay == 0);
  CHECK(adamw.lr == 1e-3);
  CHECK(adamw.betas == std::array{0.9, 0.999});
  CHECK(adamw.eps == 1e-8);
  CHECK(adamw.weight_decay == 0.01);
}

TEST_CASE_TEMPLATE("The state has PyTorch's names, and exists from a parameter's first step on", Optimizer,
                   tg::Adam<double>, tg::AdamW<double>) {
  Parameter w(Array{1.0, -2.0});
  w.set_name("w");
  Optimizer optimizer({w}, {.betas = {0.5, 0.75}, .weight_decay = 0});
  const auto& state = optimizer.state().at("w");
  optimizer.step();  // without a gradient
  CHECK(state.step == 0);
  CHECK_FALSE(state.exp_avg.has_value());
  CHECK_FALSE(state.exp_avg_sq.has_value());
  CHECK_THROWS_AS(state.exp_avg.value(), std::bad_optional_access);
  w.set_grad(Array{2.0, -4.0});
  optimizer.step();
  CHECK(state.step == 1);
  check_close(state.exp_avg.value(), Array{1.0, -2.0}, 0.0);
  check_close(state.exp_avg_sq.value(), Array{1.0, 4.0}, 0.0);
  w.set_grad(Array{0.0, 0.0});
  optimizer.step();
  CHECK(state.step == 2);
  check_close(state.exp_avg.value(), Array{0.5, -1.0}, 0.0);
  check_close(state.exp_avg_sq.value(), Array{0.75, 3.0}, 0.0);
}

TEST_CASE_TEMPLATE("Gradients at the limits of float: eps determines the step of zeros, and elements are independent",
                   T, float, double) {
  const T tiny = std::numeric_limits<T>::denorm_min();
  const bool is_float = std::is_same_v<T, float>;
  for (const auto set : tg::detail::instruction_sets()) {
    const UseInstructionSet use(set);
    tg::Parameter<T> p(tg::Array<T>(tg::Shape{40}, T(1)));
    tg::AdamW<T> optimizer({p}, {.lr = 0.1, .eps = 1e-8, .weight_decay = 0});
    tg::Array<T> g(tg::Shape{40}, T(1));
    g(0) = 0, g(1) = T(1e30), g(2) = T(1e-20), g(3) = tiny, g(4) = kNaN<T>, g(5) = kInfinity<T>;
    p.set_grad(g);
    optimizer.step();
    CHECK(p.value()(0) == 1);
    // The square of 1e30 overflows a float: as in PyTorch, such an element does not change.
    CHECK(p.value()(1) == doctest::Approx(is_float ? 1.0 : 0.9));
    CHECK(p.value()(2) == doctest::Approx(1.0));
    CHECK(p.value()(3) == 1);
    CHECK(std::isnan(p.value()(4)));
    CHECK(std::isnan(p.value()(5)));
    for (std::size_t i = 6; i < 40; ++i) CHECK(p.value()(i) == doctest::Approx(0.9));
    const tg::Array<T>& v = optimizer.state().at("0").exp_avg_sq.value();
    CHECK(v(0) == 0);
    CHECK(v(3) == 0);
  }
  tg::Parameter<T> p(tg::Array<T>{0, 0});
  p.set_grad(tg::Array<T>{0, 1});
  tg::Adam<T>({p}, {.lr = 1, .eps = 0}).step();
  CHECK(std::isnan(p.value()(0)));  // 0 / 0, as in PyTorch
  CHECK(p.value()(1) == doctest::Approx(-1));
}

TEST_CASE_TEMPLATE(
    "Without weight decay an infinite element stays infinite and does not spoil the state, as in PyTorch", Optimizer,
    tg::Adam<float>, tg::AdamW<float>) {
  tg::Parameter<float> p(tg::Array<float>{1, -kInfinity<float>});
  Optimizer optimizer({p}, {.lr = 0.1, .weight_decay = 0});
  p.set_grad(tg::Array<float>{1, 1});
  optimizer.step();
  CHECK(p.value()(1) == -kInfinity<float>);
  check_close(optimizer.state().at("0").exp_avg.value(), Array{0.1, 0.1}, 1e-6);
}

TEST_CASE_TEMPLATE("A million steps by equal gradients are a million times lr", Optimizer, tg::Adam<double>,
                   tg::AdamW<double>) {
  Parameter p(Array{0.0, 0.0});
  Optimizer optimizer({p}, {.lr = 1e-6, .eps = 0, .weight_decay = 0});
  p.set_grad(Array{2.0, -0.01});
  for (int step = 0; step < 1'000'000; ++step) optimizer.step();
  check_close(p.value(), Array{-1.0, 1.0}, 1e-9);
  CHECK(optimizer.state().at("0").step == 1'000'000);
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

TEST_CASE_TEMPLATE("Steps allocate the moments once", Optimizer, tg::Adam<float>, tg::AdamW<float>) {
  tg::Parameter<float> p(tg::Array<float>(tg::Shape{1000}, 1.0f));
  p.set_grad(p.value());
  Optimizer optimizer({p});
  const float* place = p.value().data();
  optimizer.step();
  const std::ptrdiff_t blocks = tg::pool_blocks_in_use();
  const float* mean = optimizer.state().at("0").exp_avg.value().data();
  optimizer.step();
  CHECK(p.value().data() == place);
  CHECK(optimizer.state().at("0").exp_avg.value().data() == mean);
  CHECK(tg::pool_blocks_in_use() == blocks);
}

TEST_CASE("Adam and AdamW refuse options out of range by name and value") {
  Parameter p(Array{1.0});
  const auto adam = [&](const tg::AdamOptions& options) { return tg::Adam<double>({p}, options); };
  const auto adamw = [&](const tg::AdamWOptions& options) { return tg::AdamW<double>({p}, options); };
  const double nan = kNaN<double>, infinity = kInfinity<double>;
  using Invalid = std::invalid_argument;
  CHECK_THROWS_WITH_AS(adam({.lr = -0.1}), "[Adam] expected a finite lr of 0 or more, got -0.1", Invalid);
  CHECK_THROWS_WITH_AS(adam({.eps = -1}), "[Adam] expected a finite eps of 0 or more, got -1", Invalid);
  CHECK_THROWS_WITH_AS(adam({.weight_decay = nan}), "[Adam] expected a finite weight_decay of 0 or more, got nan",
                       Invalid);
  CHECK_THROWS_WITH_AS(adam({.betas = {1, 0.5}}), "[Adam] expected betas in [0, 1), got 1 and 0.5", Invalid);
  CHECK_THROWS_WITH_AS(adamw({.lr = infinity}), "[AdamW] expected a finite lr of 0 or more, got inf", Invalid);
  CHECK_THROWS_WITH_AS(adamw({.eps = nan}), "[AdamW] expected a finite eps of 0 or more, got nan", Invalid);
  CHECK_THROWS_WITH_AS(adamw({.weight_decay = -1}), "[AdamW] expected a finite weight_decay of 0 or more, got -1",
                       Invalid);
  for (const double beta : {-0.1, 1.0, 1.5, nan}) {
    CHECK_THROWS_WITH_AS(adamw({.betas = {beta, 0}}), Contains("[AdamW] expected betas in [0, 1)"), Invalid);
    CHECK_THROWS_WITH_AS(adamw({.betas = {0, beta}}), Contains("[AdamW] expected betas in [0, 1)"), Invalid);
  }
  CHECK_NOTHROW(adam({.lr = 0, .betas = {0, 0}, .eps = 0, .weight_decay = 0}));
  tg::AdamW<double> optimizer = adamw({.lr = 0.5});
  CHECK_THROWS_WITH_AS(optimizer.set_lr(-1), "[AdamW] expected a finite lr of 0 or more, got -1", Invalid);
  CHECK(optimizer.lr() == 0.5);
}
