#include <tapegrad/testing.hpp>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "in_double.hpp"

namespace {

Tensor two_outputs(const Tensor& v) { return tg::stack({tg::sum(v * v), tg::exp(tg::select(v, 0, 0))}); }

}  // namespace

// ---- Jacobians ------------------------------------------------------------------------------------------------------

TEST_CASE("A Jacobian has the outputs' axes before the inputs'") {
  CHECK_CLOSE(tg::jacobian(two_outputs, Array{0.3, -0.2, 0.5}), {{0.6, -0.4, 1.0}, {std::exp(0.3), 0.0, 0.0}});
  const Array scalar = tg::jacobian([](const Tensor& v) { return tg::sum(v * v); }, Array{{1.0, 2.0}});
  CHECK_CLOSE(scalar, {{2, 4}});
  const Array transposed = tg::jacobian([](const Tensor& v) { return tg::transpose(v, 0, 1); }, Array{{1.0, 2.0}});
  CHECK(transposed.shape() == tg::Shape{2, 1, 1, 2});
  CHECK_CLOSE(tg::reshape(Tensor(transposed), {2, 2}), {{1, 0}, {0, 1}});
  CHECK_CLOSE(tg::jacobian([](const tg::Tensor<float>& v) { return v * v; }, tg::Array<float>{3, 4}), {{6, 0}, {0, 8}});
}

TEST_CASE("A Jacobian of x itself is the identity, of a constant 0, and of no elements empty") {
  CHECK_CLOSE(tg::jacobian([](const Tensor& v) { return v; }, Array{5.0, 6.0}), {{1, 0}, {0, 1}});
  CHECK_CLOSE(tg::jacobian([](const Tensor&) { return Tensor(Array{1.0, 2.0}); }, Array{5.0, 6.0}), {{0, 0}, {0, 0}});
  const Array none = tg::jacobian([](const Tensor& v) { return v * 2.0; }, Array(tg::Shape{0}));
  CHECK(none.shape() == tg::Shape{0, 0});
}

TEST_CASE("A Jacobian leaves the gradients of other parameters and an outer tape alone") {
  Parameter w(Array{2.0, 3.0});
  const tg::Tape outer;
  const Tensor loss = tg::sum(w * w);
  loss.backward();
  const std::size_t size = outer.size();
  CHECK_CLOSE(tg::jacobian([&](const Tensor& v) { return v * w; }, Array{1.0, 1.0}), {{2, 0}, {0, 3}});
  CHECK(w.grad() == Array{4.0, 6.0});
  CHECK(outer.size() == size);
  const tg::NoGrad pause;
  CHECK_CLOSE(tg::jacobian([&](const Tensor& v) { return v * w; }, Array{1.0, 1.0}), {{2, 0}, {0, 3}});
}

// ---- products with a Hessian ----------------------------------------------------------------------------------------

TEST_CASE("The product with a Hessian matches the second derivative to 1e-7") {
  const Array x{0.3, -0.2, 0.5}, v{1.0, 2.0, -1.0};
  const auto cubes = [](const Tensor& y) { return tg::sum(y * y * y); };  // Hessian: diag(6 x)
  CHECK_CLOSE(tg::hessian_vector_product(cubes, x, v), {1.8, -2.4, -3.0}, 1e-7);
  const auto mixed = [](const Tensor& y) { return tg::select(y, 0, 0) * tg::exp(tg::select(y, 0, 2)); };
  const double e = std::exp(0.5);  // Hessian: 0 but for e at (0, 2) and (2, 0), and 0.3 e at (2, 2)
  CHECK_CLOSE(tg::hessian_vector_product(mixed, x, v), {-e, 0, e - 0.3 * e}, 1e-7);
  for (const double length : {1e-8, 1e8})  // v's length does not matter, nor does a large x
    CHECK_CLOSE(tg::hessian_vector_product(cubes, x * 1e3, v * length) / (1e3 * length), {1.8, -2.4, -3.0}, 1e-7);
}

TEST_CASE("The product with a Hessian is 0 for v = 0, a linear f, and a constant") {
  const Array x{1.0, 2.0}, v{1.0, -1.0}, zeros{0.0, 0.0};
  CHECK_CLOSE(tg::hessian_vector_product([](const Tensor& y) { return tg::sum(y * y); }, x, zeros), zeros);
  CHECK_CLOSE(tg::hessian_vector_product([](const Tensor& y) { return tg::sum(y); }, x, v), zeros, 0);
  CHECK_CLOSE(tg::hessian_vector_product([](const Tensor&) { return Tensor(1.0); }, x, v), zeros, 0);
}

TEST_CASE("Over a model's parameters, the product matches the Hessian by hand and restores everything") {
  Parameter a(Array{0.5, 2.0}), b(Array{3.0, -1.0});
  a.set_grad({7.0, 8.0});
  const auto f = [&] { return tg::sum(a * a * b); };  // d2/da2 = 2b, d2/dadb = 2a
  const std::vector<Array> v{Array{1.0, 0.5}, Array{-1.0, 2.0}};
  const auto products = tg::hessian_vector_product(f, {a, b}, v);
  CHECK_CLOSE(products.at(0), {2 * 3.0 - 2 * 0.5, 2 * -1.0 * 0.5 + 2 * 2.0 * 2.0}, 1e-7);
  CHECK_CLOSE(products.at(1), {2 * 0.5, 2 * 2.0 * 0.5}, 1e-7);
  CHECK(a.value() == Array{0.5, 2.0});
  CHECK(a.grad() == Array{7.0, 8.0});
  CHECK_FALSE(b.has_grad());
  CHECK_THROWS_AS(tg::hessian_vector_product([&]() -> Tensor { throw std::runtime_error("f"); }, {a, b}, v),
                  std::runtime_error);
  CHECK(a.value() == Array{0.5, 2.0});
}

TEST_CASE("A v that does not match x, and an f that is no scalar, are refused") {
  const auto squares = [](const Tensor& y) { return y * y; };
  CHECK_THROWS_WITH_AS(tg::hessian_vector_product(squares, Array{1.0, 2.0}, Array{1.0}),
                       "[hessian_vector_product] expected v of shape (2), got (1)", std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::hessian_vector_product(squares, Array{1.0, 2.0}, Array{1.0, 1.0}),
                       Contains("expected a scalar"), std::invalid_argument);
  Parameter a(Array{1.0});
  CHECK_THROWS_WITH_AS(tg::hessian_vector_product([&] { return tg::sum(a); }, {a}, {}),
                       "[hessian_vector_product] expected an array v for each of 1 parameters, got 0",
                       std::invalid_argument);
}
