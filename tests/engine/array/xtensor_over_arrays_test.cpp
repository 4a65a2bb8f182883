/// xtensor's own functions over tapegrad's arrays. They call eval() and others unqualified, so argument-dependent
/// lookup also searches namespace tapegrad. Each result must equal xtensor's result over an xt::xarray.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#if __has_include(<xtensor/core/xmath.hpp>)  // xtensor 0.26 and later
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/generators/xbuilder.hpp>
#include <xtensor/misc/xhistogram.hpp>
#include <xtensor/misc/xmanipulation.hpp>
#include <xtensor/misc/xsort.hpp>
#include <xtensor/reducers/xnorm.hpp>
#include <xtensor/views/xindex_view.hpp>
#include <xtensor/views/xmasked_view.hpp>
#include <xtensor/views/xstrided_view.hpp>
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xbuilder.hpp>
#include <xtensor/xhistogram.hpp>
#include <xtensor/xindex_view.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmasked_view.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xnorm.hpp>
#include <xtensor/xsort.hpp>
#include <xtensor/xstrided_view.hpp>
#include <xtensor/xview.hpp>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

constexpr auto immediate = xt::evaluation_strategy::immediate;

const std::vector<std::size_t> first{0}, second{1}, both{0, 1};

/// False for xtensor 0.24 with GCC: xtensor mistakes the shape of any array, even its own, for one of 4 axes. Then
/// immediate reductions and their users compile but throw std::bad_alloc.
constexpr bool is_immediate_sound =
    std::is_same_v<decltype(xt::sum(std::declval<xt::xarray<double>&>(), first, immediate)), xt::xarray<double>>;

/// Unordered values with duplicates.
template <class A> A sample_array() {
  if constexpr (std::is_same_v<typename A::value_type, bool>)
    return {{true, false, true, true}, {false, false, true, false}, {true, true, true, false}};
  else
    return {{3, 1, 4, 1}, {5, 9, 2, 6}, {5, 3, 8, 7}};
}

/// Expects f(array) to be the same for tapegrad's array and xtensor's.
template <class T, class F> void check_same(const F& f) {
  auto ours = sample_array<tapegrad::Array<T>>();
  auto theirs = sample_array<xt::xarray<T>>();
  const auto actual = f(ours);
  const auto expected = f(theirs);
  if constexpr (std::is_arithmetic_v<decltype(expected)>) {
    CHECK(actual == expected);
  } else {
    CHECK(std::equal(actual.shape().begin(), actual.shape().end(), expected.shape().begin(), expected.shape().end()));
    CHECK(std::equal(actual.begin(), actual.end(), expected.begin(), expected.end()));
  }
}

/// The same for an f with immediate reductions; only compiles f if xtensor has the bug.
template <class T, class F> void check_immediate(const F& f) {
  if constexpr (is_immediate_sound) {
    check_same<T>(f);
  } else {
    [[maybe_unused]] const auto compiled = [&f] {
      auto ours = sample_array<tapegrad::Array<T>>();
      f(ours);
    };
  }
}

/// True if an unqualified call with an X as the model may choose one of tapegrad's functions.
template <class X>
concept TakenForModel = requires(X& x) {
  tapegrad::eval(x);
}
|| requires(X& x) { tapegrad::train(x); }
|| requires(X& x) { tapegrad::zero_grad(x); }
|| requires(X& x) { tapegrad::count_parameters(x); }
|| requires(X& x) { tapegrad::named_parameters(x); }
|| requires(X& x) { tapegrad::parameters(x); }
|| requires(X& x) {
  tapegrad::parameters(x, [](std::string_view, const auto&) { return true; });
}
|| requires(X& x) { tapegrad::save(x, "file"); }
|| requires(X& x) { tapegrad::save_bytes(x); }
|| requires(X& x) { tapegrad::load(x, "file"); }
|| requires(X& x) { tapegrad::load(x, std::span<const std::byte>()); }
|| requires(X& x) { tapegrad::print(std::cout, x); }
|| requires(X& x) { tapegrad::gradient_report(std::cout, x); }
|| requires(X& x) { tapegrad::initialize_gpt2(x); }
|| requires(X& x) { tapegrad::initialize_lecun(x); };

static_assert(TakenForModel<tapegrad::Linear<>>);
static_assert(!TakenForModel<tapegrad::Array<float>>);
static_assert(!TakenForModel<const tapegrad::IntArray>);
static_assert(!TakenForModel<decltype(std::declval<tapegrad::BoolArray&>() + 1)>);
static_assert(!TakenForModel<xt::xarray<double>>);

}  // namespace

TEST_CASE_TEMPLATE("xtensor reduces and sorts arrays of every type", T, float, std::int64_t) {
  check_immediate<T>([](auto& x) { return xt::sum(x, first, immediate); });
  check_immediate<T>([](auto& x) { return xt::stddev(x, first); });
  check_immediate<T>([](auto& x) { return xt::argmax(x, 1); });
  check_same<T>([](auto& x) { return xt::sort(x, 0); });
  check_same<T>([](auto& x) { return xt::unique(x); });
  check_same<T>([](auto& x) { return xt::median(x); });
}

TEST_CASE("xtensor reduces masks and arrays, lazily and immediately") {
  check_immediate<bool>([](auto& x) { return xt::sum(x, first, immediate); });
  check_same<bool>([](auto& x) { return xt::count_nonzero(x)(); });
  check_same<bool>([](auto& x) { return xt::all(x) + 2 * xt::any(x); });
  check_same<bool>([](auto& x) { return xt::where(x, 1, 2); });
  check_same<double>([](auto& x) { return xt::sum(x, {0}); });
  check_immediate<double>([](auto& x) { return xt::sum(x, both, xt::keep_dims | immediate); });
  check_immediate<double>([](auto& x) { return xt::amax(x, first, immediate); });
  check_immediate<double>([](auto& x) { return xt::amin(x, immediate)(); });
  check_immediate<double>([](auto& x) { return xt::variance(x, second); });
  check_immediate<double>([](auto& x) { return xt::stddev(2 * x, second, immediate); });
  check_same<double>([](auto& x) { return xt::norm_l2(x, {1}); });
  check_same<double>([](auto& x) { return xt::cumsum(x, 0); });
}

TEST_CASE("xtensor sorts, searches and computes elementwise") {
  check_same<double>([](auto& x) { return xt::argmax(x)(); });
  check_same<double>([](auto& x) { return xt::argsort(x); });
  check_immediate<double>([](auto& x) { return xt::argmax(x * x, 0); });
  check_same<double>([](auto& x) { return xt::partition(x, 2, 1); });
  check_same<double>([](auto& x) { return xt::histogram(xt::flatten(x), std::size_t{4}); });
  check_same<double>([](auto& x) { return xt::eval(x); });
  check_same<double>([](auto& x) { return xt::eval(x + x); });
  check_same<double>([](auto& x) { return xt::where(x > 3, x, -x); });
  check_same<double>([](auto& x) { return xt::clip(x, 2, 5); });
  check_same<double>([](auto& x) { return xt::cast<int>(x); });
}

TEST_CASE("xtensor rearranges arrays") {
  check_same<double>([](auto& x) { return xt::view(x, xt::drop(1), 2); });
  check_same<double>([](auto& x) { return xt::strided_view(x, {xt::ellipsis(), xt::range(3, 0, -2)}); });
  check_same<double>([](auto& x) { return xt::index_view(x, std::vector<xt::xindex>{{0, 1}, {2, 3}}); });
  check_same<double>([](auto& x) { return xt::filter(x, x > 4); });
  check_same<double>([](auto& x) { return xt::concatenate(xt::xtuple(x, x), 1); });
  check_same<double>([](auto& x) { return xt::stack(xt::xtuple(x, x), 2); });
  check_same<double>([](auto& x) { return xt::broadcast(x, {2, 3, 4}); });
}

TEST_CASE("xtensor writes to arrays through views") {
  auto x = sample_array<tapegrad::Array<double>>();
  xt::view(x, 0) = xt::sum(x, {0});
  xt::filter(x, x > 8) += 1;
  xt::masked_view(x, x < 3) = 0;
  xt::noalias(xt::view(x, 2)) = xt::view(x, 0) + 1;
  CHECK(x == tapegrad::Array<double>{{14, 14, 15, 15}, {5, 10, 0, 6}, {15, 15, 16, 16}});
}
