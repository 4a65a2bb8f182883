#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "close.hpp"
#include "refused.hpp"
#include "special_values.hpp"
#include "threads.hpp"

namespace tg = tapegrad;

namespace {

using Matrix = tg::Array<double>;

Matrix product(const Matrix& a, const Matrix& b) { return tg::matmul(a, b).value(); }
Matrix transposed(const Matrix& a) { return tg::transpose(tg::Tensor<double>(a), 0, 1).value(); }

// The header's formula, with X as a matrix (m, n) whatever its shape.
Matrix newton_schulz(Matrix x, const tg::MuonOptions& options) {
  const auto [a, b, c] = options.ns_coefficients;
  double squares = 0;
  for (const double element : x) squares += element * element;
  x /= std::max(std::sqrt(squares), options.eps);
  for (std::size_t step = 0; step < options.ns_steps; ++step) {
    const Matrix cubed = product(product(x, transposed(x)), x);
    x = Matrix(a * x + b * cubed + c * product(product(x, transposed(x)), cubed));
  }
  return x;
}

// The parameter after two steps by the formula.
Matrix expected_after(Matrix p, const std::vector<Matrix>& gradients, const tg::MuonOptions& options) {
  Matrix buffer(p.shape(), 0.0);
  const auto rows = double(p.shape()[0]), columns = double(p.shape()[1]);
  const double ratio =
      options.match_rms_adamw ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  for (const Matrix& g : gradients) {
    buffer = Matrix(options.momentum * buffer + (1 - options.momentum) * g);
    const Matrix x = options.nesterov ? Matrix((1 - options.momentum) * g + options.momentum * buffer) : buffer;
    p = Matrix((1 - options.lr * options.weight_decay) * p - options.lr * ratio * newton_schulz(x, options));
  }
  return p;
}

// Each step by a new optimizer that loads the state of the previous one.
template <class T>
tg::Array<T> stepped(const Matrix& start, const std::vector<Matrix>& gradients, const tg::MuonOptions& options) {
  tg::Parameter<T> p(xt::cast<T>(start));
  std::vector<std::byte> state;
  for (const Matrix& g : gradients) {
    tg::Muon<T> muon({p}, options);
    if (!state.empty()) tg::load(muon, state);
    p.set_grad(xt::cast<T>(g));
    muon.step();
    state = tg::save_bytes(muon);
  }
  return p.value();
}

}  // namespace

TEST_CASE_TEMPLATE("Muon follows its formula for matrices of all shapes and for all options", T, float, double) {
  tg::manual_seed(1);
  const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-13;
  for (const tg::Shape& shape : {tg::Shape{3, 3}, {7, 4}, {4, 7}, {1, 5}, {5, 1}, {1, 1}, {150, 40}, {40, 150}}) {
    const Matrix start = tg::normal<double>(shape);
    const std::vector<Matrix> gradients{tg::normal<double>(shape), tg::normal<double>(shape)};
    const auto check = [&](const tg::MuonOptions& options) {
      INFO("shape = ", shape, ", options.nesterov = ", options.nesterov, ", options.ns_steps = ", options.ns_steps);
      check_close(stepped<T>(start, gradients, options), expected_after(start, gradients, options), tolerance);
    };
    check({});
    check({.lr = 0.1, .weight_decay = 0, .nesterov = false});
    check({.lr = 0.1, .momentum = 0.5, .ns_steps = 2, .match_rms_adamw = true});
    check({.lr = 0.1, .momentum = 0, .ns_coefficients = {2, -1.5, 0.5}, .ns_steps = 1});
    check({.lr = 0.1, .eps = 1000, .ns_steps = 0});
  }
}

TEST_CASE("The number of threads does not change products below half a million multiplications") {
  const Matrix start = tg::normal<double>({16, 1100});
  const auto by_threads = [&](std::size_t count) {
    const Threads threads(count);
    return stepped<float>(start, {start}, {});
  };
  CHECK(by_threads(1) == by_threads(2));
}

// An independent check: a matrix with the same singular vectors and all singular values 1 has orthonormal rows or
// columns. These coefficients converge to it; the default ones to values between 0.7 and 1.2.
TEST_CASE("Muon's steps are orthogonal matrices") {
  tg::manual_seed(2);
  for (const tg::Shape& shape : {tg::Shape{6, 6}, {9, 4}, {4, 9}}) {
    const Matrix start(shape, 0.0), gradient = tg::normal<double>(shape);
    const Matrix step = stepped<double>(start, {gradient},
                                        {.lr = 1 / std::sqrt(std::max(1.0, double(shape[0]) / double(shape[1]))),
                                         .weight_decay = 0,
                                         .ns_coefficients = {1.5, -0.5, 0},
                                         .ns_steps = 60});
    const bool is_tall = shape[0] > shape[1];
    const Matrix gram = is_tall ? product(transposed(step), step) : product(step, transposed(step));
    for (std::size_t i = 0; i < gram.shape()[0]; ++i)
      for (std::size_t j = 0; j < gram.shape()[1]; ++j)
        CHECK(gram(i, j) == doctest::Approx(i == j ? 1 : 0).epsilon(1e-10));
    double against_gradient = 0;  // the trace of G^T P: negative, as P is minus a step
    for (std::size_t i = 0; i < step.size(); ++i) against_gradient += step.data()[i] * gradient.data()[i];
    CHECK(against_gradient < 0);
  }
}

TEST_CASE("A gradient of zeros only decays the parameter, and NaN reaches it") {
  const Matrix start{{1, 2}, {3, 4}};
  const tg::MuonOptions options{.lr = 0.1, .weight_decay = 0.5};
  check_close(stepped<double>(start, {Matrix(tg::Shape{2, 2}, 0.0)}, options), Matrix(0.95 * start), 1e-15);
  const Matrix nan(tg::Shape{2, 2}, kNaN);
  for (const double element : stepped<double>(start, {nan}, options)) CHECK(std::isnan(element));
}

TEST_CASE("Muon refuses other parameters than matrices, and options out of range") {
  tg::Parameter<float> matrix(tg::Array<float>(tg::Shape{2, 3}, 1.0F)), vector(tg::Array<float>(tg::Shape{3}, 1.0F));
  check_refused("Muon", "matrices, got a parameter of shape (3); train other parameters with AdamW", [&] {
    tg::Muon<float>({matrix, vector});
  });
  const auto refuses = [&](const char* text, const tg::MuonOptions& options) {
    check_refused("Muon", text, [&] { tg::Muon<float>({matrix}, options); });
  };
  refuses("lr of 0 or more, got -1", {.lr = -1});
  refuses("weight_decay of 0 or more, got nan", {.weight_decay = kNaN});
  refuses("eps of 0 or more, got -1", {.eps = -1});
  refuses("momentum in [0, 1), got 1", {.momentum = 1});
  refuses("finite ns_coefficients, got nan", {.ns_coefficients = {1, kNaN, 1}});
  refuses("ns_steps below 100, got 100", {.ns_steps = 100});
}
