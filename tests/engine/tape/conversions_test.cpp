// How data enters: arrays from braces and ranges, tensors from arrays, and mixed arithmetic.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <xtensor/xadapt.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include <array>
#include <list>
#include <span>
#include <stdexcept>
#include <vector>

#include "in_double.hpp"

namespace {

struct OneWeight {
  tg::Linear<double> layer{2, 2};
  TAPEGRAD_FIELDS(layer)
  Tensor operator()(const Tensor& x) const { return layer(x); }
};

}  // namespace

// ---- numbers in braces, and ranges --------------------------------------------------------------------------------

TEST_CASE("Nested braces make an array with one axis per level") {
  CHECK(tg::int_array({7}).shape() == tg::Shape{1});
  CHECK(tg::int_array({{7}}).shape() == tg::Shape{1, 1});
  CHECK(tg::int_array({{{7}}}).shape() == tg::Shape{1, 1, 1});
  CHECK(tg::int_array({}).shape() == tg::Shape{0});
  CHECK(tg::int_array({{1, 2, 3}, {4, 5, 6}}) == tg::IntArray{{1, 2, 3}, {4, 5, 6}});
  CHECK(tg::int_array({{{1, 2}}, {{3, 4}}, {{5, 6}}}) == tg::IntArray{{{1, 2}}, {{3, 4}}, {{5, 6}}});
  const int id = 3;
  const std::size_t other = 4;
  CHECK(tg::int_array({{id, other}}) == tg::int_array({{3, 4}}));
  check_close(tg::array<double>({{{1, 2.5}, {3, 4}}}), Array{{{1, 2.5}, {3, 4}}}, 0.0);
  CHECK(tg::array<bool>({true, false}) == tg::BoolArray{true, false});
  const tg::Tensor<float> x = tg::tensor({{1, 2}, {3, 4.5}});
  CHECK(x.value() == tg::Array<float>{{1, 2}, {3, 4.5}});
  CHECK(tg::tensor<double>({0.1}).item() == 0.1);
}

TEST_CASE("Rows of different lengths or depths are refused with both shapes") {
  const auto message = "[int_array] expected rows of equal shape in the braces, got (2) and (1)";
  CHECK_THROWS_WITH_AS(tg::int_array({{1, 2}, {3}}), message, std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::array<float>({{{1}, {2}}, {3, 4}}), Contains("got (2, 1) and (2)"), std::invalid_argument);
  CHECK_THROWS_AS(tg::int_array({{1, 2}, 3}), std::invalid_argument);
  CHECK_THROWS_AS(tg::tensor({{{1}, {2}}, {{3}}}), std::invalid_argument);
}

TEST_CASE("Ranges make arrays with one axis or with a shape of the same size") {
  const std::vector<int> numbers{1, 2, 3, 4, 5, 6};
  CHECK(tg::int_array(numbers) == tg::IntArray{1, 2, 3, 4, 5, 6});
  CHECK(tg::int_array(std::span(numbers).first(2)) == tg::IntArray{1, 2});
  CHECK(tg::int_array(std::list<short>{1, 2}) == tg::IntArray{1, 2});
  CHECK(tg::int_array(numbers, {2, 3}) == tg::IntArray{{1, 2, 3}, {4, 5, 6}});
  CHECK(tg::int_array(std::vector<int>{}).shape() == tg::Shape{0});
  CHECK(tg::int_array(std::vector<int>{}, {2, 0}).shape() == tg::Shape{2, 0});
  CHECK(tg::array<float>(numbers, {3, 2}) == tg::Array<float>{{1, 2}, {3, 4}, {5, 6}});
  CHECK(tg::tensor(numbers, {3, 2}).value() == tg::Array<float>{{1, 2}, {3, 4}, {5, 6}});
  CHECK(tg::tensor<double>(numbers).value() == Array{1, 2, 3, 4, 5, 6});
  CHECK(tg::tensor<double>(std::array{0.5F, 1.5F}, {2, 1}).value() == tg::array<double>({{0.5}, {1.5}}));
  CHECK_THROWS_WITH_AS(tg::int_array(numbers, {2, 2}),
                       "[int_array] expected as many numbers as the shape has elements, got 6 for (2, 2)",
                       std::invalid_argument);
  for (const tg::Shape& other : {tg::Shape{7}, tg::Shape{0}, tg::Shape{}})
    CHECK_THROWS_WITH_AS(tg::array<double>(numbers, other), Contains("got 6 for ("), std::invalid_argument);
  CHECK_THROWS_AS(tg::int_array(std::vector<int>{}, {std::size_t{1} << 32, std::size_t{1} << 32}),
                  std::invalid_argument);
}

TEST_CASE("A single id in double braces is a batch of one") {
  const tg::Embedding<double> embedding(10, 3);
  const std::int64_t id = 4;
  const Tensor one = embedding({{id}});
  CHECK(one.shape() == tg::Shape{1, 1, 3});
  check_close(one.value(), embedding(tg::int_array({{4}})).value(), 0.0);
  CHECK(embedding({{1, 2, 3}, {4, 5, 6}}).shape() == tg::Shape{2, 3, 3});
  CHECK(embedding({1, 2}).shape() == tg::Shape{2, 3});
  CHECK_THROWS_WITH_AS(embedding({{1, 2}, {3}}), "[Embedding] expected rows of equal length, got 2 and 1 ids",
                       std::invalid_argument);
  CHECK_THROWS_AS(embedding({{10}}), std::out_of_range);
}

// ---- implicit conversion to a tensor ------------------------------------------------------------------------------

TEST_CASE("Arrays, expressions, views and vectors convert to tensors in a model's call") {
  const OneWeight model;
  const Array x{{1.0, 2.0}, {3.0, 4.0}};
  const Array expected = model(Tensor(x)).value();
  check_close(model(x).value(), expected, 0.0);
  check_close(model(x * 1.0).value(), expected, 0.0);
  check_close(model(Array(x)).value(), expected, 0.0);
  check_close(model(xt::xarray<double>(x)).value(), expected, 0.0);
  check_close(model(xt::xtensor<double, 2>(x)).value(), expected, 0.0);
  check_close(model(xt::view(x, xt::range(0, 1))).value(), Array(xt::view(expected, xt::range(0, 1))), 0.0);
  const std::vector<double> row{1.0, 2.0};
  check_close(model(row).value(), Array(xt::view(expected, 0)), 1e-15);
  check_close(model(xt::adapt(row, std::vector<std::size_t>{1, 2})).value(), Array(xt::view(expected, xt::range(0, 1))),
              0.0);
}

TEST_CASE("An array or expression in arithmetic with a tensor is a constant") {
  const Parameter p(Array{{1.0, 2.0}, {3.0, 4.0}});
  const Array a{{2.0, 4.0}, {8.0, 16.0}};
  const tg::Tape tape;
  check_close((p + a).value(), Array(p.value() + a), 0.0);
  check_close((a + p).value(), Array(p.value() + a), 0.0);
  check_close((p - a).value(), Array(p.value() - a), 0.0);
  check_close((a - p).value(), Array(a - p.value()), 0.0);
  check_close((p * a).value(), Array(p.value() * a), 0.0);
  check_close((a * p).value(), Array(p.value() * a), 0.0);
  check_close((p / a).value(), Array(p.value() / a), 0.0);
  check_close((a / p).value(), Array(a / p.value()), 0.0);
  check_close(((a * 2.0 - 1.0) * p).value(), Array((a * 2.0 - 1.0) * p.value()), 0.0);
  check_close((p + tg::IntArray{10, 20}).value(), Array{{11.0, 22.0}, {13.0, 24.0}}, 0.0);
  check_close((p * p + a).value(), Array(p.value() * p.value() + a), 0.0);
  check_close((p * 1.0 + xt::xtensor<float, 1>{1.0F, 2.0F}).value(), Array{{2.0, 4.0}, {4.0, 6.0}}, 0.0);
  CHECK_THROWS_AS(p + Array(tg::Shape{3}, 1.0), std::invalid_argument);
  tg::sum(p * a - a / p).backward();
  check_close(p.grad(), Array(a + a / (p.value() * p.value())), 1e-14);
}
