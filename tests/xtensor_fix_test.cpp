// Gradients derived by hand lean on xtensor's keep_dims reductions inside larger expressions: each against a loop.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "close.hpp"

#if __has_include(<xtensor/views/xview.hpp>)
#include <xtensor/core/xmath.hpp>
#include <xtensor/views/xstrided_view.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xmath.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xview.hpp>
#endif

namespace tg = tapegrad;
using Array = tg::Array<double>;

namespace {

struct Case {
  tg::Shape shape;
  std::vector<std::size_t> axes;  // ascending
};

// Every axis first, last and in the middle, several and all of them, extents of 1 reduced and not.
const Case kCases[] = {
    {{4}, {0}},
    {{2, 3}, {0}},
    {{2, 3}, {1}},
    {{2, 3}, {0, 1}},
    {{3, 3}, {1}},
    {{1, 3}, {0}},
    {{1, 3}, {1}},
    {{3, 1}, {0}},
    {{3, 1}, {1}},
    {{2, 3, 4}, {0}},
    {{2, 3, 4}, {1}},
    {{2, 3, 4}, {2}},
    {{2, 3, 4}, {0, 1}},
    {{2, 3, 4}, {0, 2}},
    {{2, 3, 4}, {1, 2}},
    {{2, 3, 4}, {0, 1, 2}},
    {{2, 1, 4}, {1}},
    {{2, 1, 4}, {0, 1}},
    {{2, 3, 4, 5}, {3}},
    {{2, 3, 4, 5}, {1, 3}},
    {{2, 3, 4, 5}, {0, 2}},
    {{1, 1, 1}, {0, 2}},
};

Array numbers(const tg::Shape& shape, std::uint64_t key) {
  Array x(shape);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = 2 * tg::random_uniform(key, i) - 1;
  return x;
}

tg::Shape reduced_shape(const Case& c) {
  tg::Shape shape = c.shape;
  for (const std::size_t axis : c.axes) shape[axis] = 1;
  return shape;
}

// The reduction by a loop, already broadcast back to the shape of x.
template <class F> Array reduce(const Case& c, const Array& x, double start, F f) {
  const tg::Shape reduced = reduced_shape(c);
  const auto strides = tg::detail::broadcast_strides(reduced, c.shape);
  const auto place = [&](std::size_t flat) {  // where element `flat` of x goes in the reduction
    std::ptrdiff_t offset = 0;
    for (std::size_t axis = c.shape.size(); axis-- > 0; flat /= c.shape[axis])
      offset += static_cast<std::ptrdiff_t>(flat % c.shape[axis]) * strides[axis];
    return offset;
  };
  Array sums(reduced, start), out(c.shape);
  for (std::size_t i = 0; i < x.size(); ++i) sums.data()[place(i)] = f(sums.data()[place(i)], x.data()[i]);
  for (std::size_t i = 0; i < x.size(); ++i) out.data()[i] = sums.data()[place(i)];
  return out;
}

Array summed(const Case& c, const Array& x) { return reduce(c, x, 0.0, std::plus<>()); }
Array largest(const Case& c, const Array& x) {
  return reduce(c, x, -1e300, [](double a, double b) { return std::max(a, b); });
}

// f(case, p, d) for all cases, with two arrays of its shape.
template <class F> void for_each_case(F f) {
  for (const Case& c : kCases) {
    INFO(tg::to_string(c.shape) << " over " << tg::to_string(tg::IntList(c.axes)));
    f(c, numbers(c.shape, 1), numbers(c.shape, 2));
  }
}

}  // namespace

TEST_CASE("A softmax's gradient derived by hand, p (d - sum(d p)), is what loops give") {
  for_each_case([](const Case& c, const Array& p, const Array& d) {
    const Array expected = p * (d - summed(c, Array(d * p)));
    check_close(Array(p * (d - xt::sum(d * p, c.axes, xt::keep_dims))), expected, 1e-14);
    const xt::xarray<double> xp = p, xd = d;
    check_close(xt::xarray<double>(xp * (xd - xt::sum(xd * xp, c.axes, xt::keep_dims))), expected, 1e-14);
    check_close(Array((d - xt::sum(d * p, c.axes, xt::keep_dims)) * p), expected, 1e-14);
    check_close(Array(p * d - p * xt::sum(d * p, c.axes, xt::keep_dims)), expected, 1e-14);
  });
}

TEST_CASE("A softmax written as one expression, reductions within reductions, is what loops give") {
  for_each_case([](const Case& c, const Array& x, const Array&) {
    const Array shifted = xt::exp(x - largest(c, x));
    const Array expected = shifted / summed(c, shifted);
    const auto exps = xt::exp(x - xt::amax(x, c.axes, xt::keep_dims));
    check_close(Array(exps / xt::sum(exps, c.axes, xt::keep_dims)), expected, 1e-14);
  });
}

TEST_CASE("A layer norm written with mean and keep_dims is what loops give") {
  for_each_case([](const Case& c, const Array& x, const Array&) {
    const double count = static_cast<double>(x.size() / tg::element_count(reduced_shape(c)));
    const Array centred = x - summed(c, x) / count;
    const Array expected = centred / xt::sqrt(summed(c, Array(centred * centred)) / count + 1e-5);
    const auto lazy = x - xt::mean(x, c.axes, xt::keep_dims);
    check_close(Array(lazy / xt::sqrt(xt::mean(lazy * lazy, c.axes, xt::keep_dims) + 1e-5)), expected, 1e-13);
  });
}

TEST_CASE("Products, smallest elements and sums said to be lazy, with keep_dims, are what loops give") {
  for_each_case([](const Case& c, const Array& x, const Array& d) {
    check_close(Array(d + xt::prod(x, c.axes, xt::keep_dims)), Array(d + reduce(c, x, 1.0, std::multiplies<>())),
                1e-14);
    check_close(Array(d + xt::amin(x, c.axes, xt::keep_dims)), Array(d - largest(c, Array(-x))), 1e-14);
    check_close(Array(d + xt::sum(x, c.axes, xt::keep_dims | xt::evaluation_strategy::lazy)), Array(d + summed(c, x)),
                1e-14);
  });
}

TEST_CASE("A reduction with keep_dims is right wherever it is assigned: alone, in place, to a view, column by column") {
  for_each_case([](const Case& c, const Array& p, const Array& d) {
    const Array expected = d - summed(c, p);
    const Array alone = xt::sum(p, c.axes, xt::keep_dims);
    CHECK(tg::to_string(alone.shape()) == tg::to_string(reduced_shape(c)));
    check_close(Array(d - alone), expected, 1e-14);
    Array in_place = d;
    in_place -= xt::sum(p, c.axes, xt::keep_dims);
    check_close(in_place, expected, 1e-14);
    tg::Shape doubled = c.shape;
    doubled[0] *= 2;
    Array halves(doubled, 0.0);
    xt::view(halves, xt::range(c.shape[0], doubled[0])) = d - xt::sum(p, c.axes, xt::keep_dims);
    check_close(Array(xt::view(halves, xt::range(c.shape[0], doubled[0]))), expected, 1e-14);
    const xt::xarray<double, xt::layout_type::column_major> by_columns = d - xt::sum(p, c.axes, xt::keep_dims);
    check_close(Array(by_columns), expected, 1e-14);
    const xt::xarray<double, xt::layout_type::column_major> cp = p, cd = d;
    check_close(Array(cd - xt::sum(cp, c.axes, xt::keep_dims)), expected, 1e-14);
  });
}

TEST_CASE("A reduction with keep_dims is right walked over by iterators or reshaped") {
  for_each_case([](const Case& c, const Array& p, const Array& d) {
    const Array expected = d - summed(c, p);
    const auto lazy = d - xt::sum(p, c.axes, xt::keep_dims);
    check_close(Array(xt::reshape_view(lazy, c.shape)), expected, 1e-14);
    std::ptrdiff_t flat = 0;
    for (const double value : lazy) {
      CHECK(value == doctest::Approx(expected.data()[flat]));
      CHECK(*(lazy.begin() + flat) == value);
      ++flat;
    }
    REQUIRE(flat == static_cast<std::ptrdiff_t>(expected.size()));
  });
}

TEST_CASE("A reduction with keep_dims broadcasts under leading axes and beside a reduction without") {
  const Array p = numbers({3, 4}, 1), x = numbers({2, 3, 4}, 2);
  const Array under = x * xt::sum(p, {1}, xt::keep_dims);                              // (2, 3, 4) * (3, 1)
  const Array beside = xt::sum(x, {0}) - xt::sum(p, {0}, xt::keep_dims);               // (3, 4) - (1, 4)
  const Array both = xt::sum(x, {2}, xt::keep_dims) + xt::sum(x, {1}, xt::keep_dims);  // (2, 3, 1) + (2, 1, 4)
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 4; ++k) {
        double row = 0, column = 0, x_row = 0, x_column = 0;
        for (std::size_t n = 0; n < 4; ++n) row += p(j, n), x_row += x(i, j, n);
        for (std::size_t n = 0; n < 3; ++n) column += p(n, k), x_column += x(i, n, k);
        CHECK(under(i, j, k) == doctest::Approx(x(i, j, k) * row));
        CHECK(beside(j, k) == doctest::Approx(x(0, j, k) + x(1, j, k) - column));
        CHECK(both(i, j, k) == doctest::Approx(x_row + x_column));
      }
}

TEST_CASE("Axes of keep_dims may be written in braces, negative, or as one number") {
  const Array x = numbers({2, 3, 4}, 1), d = numbers({2, 3, 4}, 2);
  const Array last = d - summed({{2, 3, 4}, {2}}, x), outer = d - summed({{2, 3, 4}, {0, 2}}, x);
  check_close(Array(d - xt::sum(x, {2}, xt::keep_dims)), last, 1e-14);
  check_close(Array(d - xt::sum(x, {-1}, xt::keep_dims)), last, 1e-14);
  check_close(Array(d - xt::sum(x, 2, xt::keep_dims)), last, 1e-14);
  check_close(Array(d - xt::sum(x, {0, 2}, xt::keep_dims)), outer, 1e-14);
  check_close(Array(d - xt::sum(x, {0, -1}, xt::keep_dims)), outer, 1e-14);
  check_close(Array(d - xt::sum(x, xt::keep_dims)), Array(d - summed({{2, 3, 4}, {0, 1, 2}}, x)), 1e-14);
}

TEST_CASE("Reductions without keep_dims are as they were") {
  const Array x = numbers({2, 3, 4}, 1);
  const Array sums = xt::sum(x, {1}) * 1.0, total = xt::sum(x) + 0.0;
  CHECK(tg::to_string(sums.shape()) == "(2, 4)");
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t k = 0; k < 4; ++k) CHECK(sums(i, k) == doctest::Approx(x(i, 0, k) + x(i, 1, k) + x(i, 2, k)));
  CHECK(total() == doctest::Approx(summed({{2, 3, 4}, {0, 1, 2}}, x)(0, 0, 0)));
}

TEST_CASE("Reductions with keep_dims of floats and integers are right too") {
  const tg::IntArray ids{{1, 2, 3}, {4, 5, 6}};
  CHECK(tg::IntArray(ids - xt::sum(ids, {1}, xt::keep_dims)) == tg::IntArray{{-5, -4, -3}, {-11, -10, -9}});
  const tg::Array<float> f{{1.0F, 2.0F}, {3.0F, 5.0F}};
  CHECK(tg::Array<float>(f * xt::sum(f, {0}, xt::keep_dims)) == tg::Array<float>{{4.0F, 14.0F}, {12.0F, 35.0F}});
}
