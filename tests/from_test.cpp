// Arrays from what programs have, and arithmetic of tensors with them.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "close.hpp"

namespace tg = tapegrad;
using doctest::Contains;
using Array = tg::Array<double>;
using Parameter = tg::Parameter<double>;

TEST_CASE("Numbers in braces have the shape of the braces, and stand in row-major order") {
  const Array matrix = tg::array<double>({{1, 2, 3}, {4, 5, 6}});
  CHECK(matrix.shape() == tg::Shape{2, 3});
  CHECK(matrix(0, 2) == 3.0);
  CHECK(matrix(1, 0) == 4.0);
  const tg::IntArray deep = tg::int_array({{{1, 2, 3}, {4, 5, 6}}, {{7, 8, 9}, {10, 11, 12}}});
  CHECK(deep.shape() == tg::Shape{2, 2, 3});
  CHECK(deep(1, 0, 2) == 9);
  CHECK(tg::int_array({{7}}).shape() == tg::Shape{1, 1});
  CHECK(tg::int_array({{7}, {8}, {9}}).shape() == tg::Shape{3, 1});
  CHECK(tg::tensor({{1, 2}, {3, 4}}).value()(1, 0) == 3.0F);
}

TEST_CASE("Rows of different lengths or depths in braces are refused with both shapes") {
  CHECK_THROWS_WITH_AS(tg::int_array({{1, 2}, {3}}), Contains("[array] expected rows of one shape"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::array<double>({{1, 2}, {3, 4, 5}}), Contains("(2) and (3)"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::array<float>({{{1}, {2}}, {3, 4}}), Contains("(2, 1) and (2)"), std::invalid_argument);
}

TEST_CASE("A range of numbers fills a shape that has as many elements, and no other") {
  const std::vector<int> numbers{1, 2, 3, 4, 5, 6};
  CHECK(tg::int_array(numbers).shape() == tg::Shape{6});
  const Array matrix = tg::array<double>(numbers, {2, 3});
  CHECK(matrix(1, 0) == 4.0);
  CHECK(tg::tensor<double>(std::array{0.5F, 1.5F}, {2, 1}).value()(1, 0) == 1.5);
  for (const tg::Shape& other : {tg::Shape{2, 2}, tg::Shape{7}, tg::Shape{0}})
    CHECK_THROWS_WITH_AS(tg::array<double>(numbers, other), Contains("given 6 for ("), std::invalid_argument);
}

TEST_CASE("An array or an expression on either side of a tensor is a constant") {
  const Array numbers{2.0, 5.0};
  const Parameter p(Array{4.0, 10.0});
  check_close((p + numbers).value(), Array{6.0, 15.0}, 0.0);
  check_close((p - numbers).value(), Array{2.0, 5.0}, 0.0);
  check_close((numbers - p).value(), Array{-2.0, -5.0}, 0.0);
  check_close((p * (numbers + 1.0)).value(), Array{12.0, 60.0}, 0.0);
  check_close((p / numbers).value(), Array{2.0, 2.0}, 0.0);
  check_close((numbers / p).value(), Array{0.5, 0.5}, 0.0);
  const tg::Tape tape;
  tg::sum(numbers * p - numbers).backward();
  check_close(p.grad(), numbers, 0.0);
}
