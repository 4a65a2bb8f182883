/// Corner cases: edge sizes of operations, use of random numbers, what tapes and parameters hold, and gradcheck's
/// tolerance.
#include <tapegrad/testing.hpp>

#include <functional>
#include <limits>
#include <numeric>

#include "in_double.hpp"
#include "text.hpp"

using tg::testing::gradcheck;

namespace {

// The number of keys drawn by f.
std::size_t keys_drawn(const std::function<void()>& f) {
  tg::manual_seed(20);
  f();
  const std::uint64_t next = tg::default_generator().next_key();
  tg::manual_seed(20);
  for (std::size_t count = 0; count < 100; ++count)
    if (tg::default_generator().next_key() == next) return count;
  return 100;
}

// Returns x; its rule wrongly multiplies the gradient by the factor.
Tensor wrong_by(const Tensor& x, double factor) {
  return tg::record("wrong", Array(x.value()), {x}, [factor](const Array& dy, auto& dx) { dx[0] += dy * factor; });
}

}  // namespace

// ---- edge sizes of operations -------------------------------------------------------------------------------------

TEST_CASE("split returns full pieces and the rest, and no empty piece") {
  const Tensor x(Array{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}});
  const auto extents = [&](std::size_t size) {
    std::vector<std::size_t> all;
    for (const Tensor& piece : tg::split(x, size)) all.push_back(piece.shape()[0]);
    return all;
  };
  CHECK(extents(1) == std::vector<std::size_t>(6, 1));
  CHECK(extents(2) == std::vector<std::size_t>{2, 2, 2});
  CHECK(extents(4) == std::vector<std::size_t>{4, 2});
  CHECK(extents(5) == std::vector<std::size_t>{5, 1});
  CHECK(extents(6) == std::vector<std::size_t>{6});
  CHECK(extents(100) == std::vector<std::size_t>{6});
  CHECK(tg::split(Tensor(Array({0, 2}, 1.0)), 3).size() == 1);
  CHECK(tg::cat(tg::split(x, 4)).value() == x.value());
}

TEST_CASE_TEMPLATE(
    "Along every axis, NaN is the largest element, and equal elements keep their order or share amax's gradient", T,
    float, double) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
  const std::vector<std::vector<T>> alphabets{
      {nan, 0}, {nan, infinity, -infinity}, {nan, nan, 1, 2, -1, infinity}, {1, 2, 3}, {-infinity, 3}, {-infinity}};
  const auto same = [](T a, T b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  const auto larger = [](T a, T b) { return a > b || (std::isnan(a) && !std::isnan(b)); };
  const std::vector<tg::Shape> shapes{{2},      {70},     {2, 3},    {3, 2},     {1, 9},       {9, 1},
                                      {33, 17}, {17, 33}, {3, 5, 4}, {2, 70, 3}, {2, 3, 2, 3}, {90, 400}};
  for (const tg::Shape& shape : shapes)
    for (std::size_t key = 0; key < 2 * alphabets.size(); ++key) {
      const std::vector<T>& alphabet = alphabets[key % alphabets.size()];
      tg::Array<T> x(shape);
      for (std::size_t i = 0; i < x.size(); ++i)
        x.data()[i] = alphabet[static_cast<std::size_t>(tg::random_uniform(key, i) * double(alphabet.size()))];
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::size_t n = shape[axis];
        const auto along = static_cast<std::ptrdiff_t>(axis);
        std::size_t step = 1;
        for (std::size_t i = axis + 1; i < shape.size(); ++i) step *= shape[i];
        tg::Shape kept = shape;
        kept[axis] = 1;
        tg::IntArray descending(shape), ascending(shape), best(kept), least(kept);
        tg::Array<T> shares(shape, T(0));  // of the gradient of amax
        for (std::size_t row = 0; row < x.size() / n; ++row) {
          const std::size_t first = row / step * n * step + row % step;
          const auto at = [&](auto j) { return x.data()[first + static_cast<std::size_t>(j) * step]; };
          std::vector<std::int64_t> order(n);
          std::iota(order.begin(), order.end(), 0);
          std::ranges::stable_sort(order, [&](auto a, auto b) { return larger(at(b), at(a)); });
          for (std::size_t j = 0; j < n; ++j) ascending.data()[first + j * step] = order[j];
          least.data()[row] = order[0];
          std::iota(order.begin(), order.end(), 0);
          std::ranges::stable_sort(order, [&](auto a, auto b) { return larger(at(a), at(b)); });
          for (std::size_t j = 0; j < n; ++j) descending.data()[first + j * step] = order[j];
          best.data()[row] = order[0];
          const auto is_best = [&](auto j) { return at(j) == at(order[0]); };
          const auto count = std::ranges::count_if(order, is_best);
          for (std::size_t j = 0; j < n; ++j)
            if (is_best(j)) shares.data()[first + j * step] = 1 / static_cast<T>(count);
        }
        INFO("shape = ", tg::to_string(shape), ", key = ", key, ", axis = ", axis);
        tg::Parameter<T> parameter(x);
        tg::Tape tape;
        const auto max = tg::max(parameter, along, tg::keepdims);
        const tg::Tensor<T> amax = tg::amax(parameter, along, tg::keepdims);
        CHECK(std::ranges::equal(tg::argmax(parameter, along), best));
        CHECK(max.indices == best);
        CHECK(tg::topk(parameter, 1, along).indices == best);
        CHECK(tg::topk(parameter, 1, along, false).indices == least);
        CHECK(tg::topk(parameter, n, along).indices == descending);
        CHECK(tg::topk(parameter, n, along, false).indices == ascending);
        const tg::Array<T> values = tg::gather(tg::Tensor<T>(x), along, best).value();
        CHECK(std::ranges::equal(max.values.value(), values, same));
        CHECK(std::ranges::equal(amax.value(), values, same));
        tg::sum(max.values).backward();
        CHECK(std::size_t(std::ranges::count(parameter.grad(), T(1))) == best.size());
        CHECK(std::ranges::all_of(tg::gather(tg::Tensor<T>(parameter.grad()), along, best).value(),
                                  [](T d) { return d == 1; }));
        if (std::ranges::any_of(x, [](T a) { return std::isnan(a); })) continue;
        parameter.zero_grad();
        tg::sum(amax).backward();
        CHECK(parameter.grad() == shares);
      }
    }
}

// ---- random numbers -----------------------------------------------------------------------------------------------

TEST_CASE("dropout draws a key only if it drops something") {
  const Tensor x(tg::Array<double>({1, 4, 6}, 1.0));
  CHECK(keys_drawn([&] { tg::dropout(x, 0.0); }) == 0);
  CHECK(keys_drawn([&] { tg::dropout(x, 0.5, false); }) == 0);
  CHECK(keys_drawn([&] { tg::dropout(x, 0.0, false); }) == 0);
  CHECK(keys_drawn([&] { tg::dropout(x, 0.5); }) == 1);
  CHECK(keys_drawn([&] { tg::scaled_dot_product_attention(x, x, x); }) == 0);
  CHECK(keys_drawn([&] { tg::multi_head_attention(x, x, x, 2); }) == 0);
  CHECK(keys_drawn([&] { tg::scaled_dot_product_attention(x, x, x, {}, {.dropout = 0.5}); }) == 1);
  CHECK(keys_drawn([&] { tg::multi_head_attention(x, x, x, 2, {}, {.dropout = 0.5}); }) == 1);

  tg::MultiHeadAttention<double> layer(6, 2, {.dropout = 0.5});
  CHECK(keys_drawn([&] { layer(x); }) == 1);
  CHECK(keys_drawn([&] { layer.with_weights(x, x, x); }) == 1);
  CHECK(keys_drawn([&] { layer.attention_weights(x, x); }) == 0);
  tg::eval(layer);
  CHECK(keys_drawn([&] { layer(x); }) == 0);
  CHECK(keys_drawn([&] { layer.with_weights(x, x, x); }) == 0);
}

TEST_CASE("A backward pass draws no keys: the same elements are dropped again") {
  const Parameter x(tg::Array<double>({1, 4, 6}, 1.0));
  const auto run = [&](bool sweeps) {
    tg::Tape tape;
    const Tensor y = tg::dropout(tg::scaled_dot_product_attention(x, x, x, {}, {.dropout = 0.5}), 0.5);
    if (sweeps) y.backward(Array(y.shape(), 1.0));
  };
  CHECK(keys_drawn([&] { run(true); }) == keys_drawn([&] { run(false); }));
}

TEST_CASE("with_weights drops in training like attention, and returns the weights before dropout") {
  tg::manual_seed(21);
  tg::MultiHeadAttention<double> layer(4, 2, {.dropout = 0.5});
  const Tensor x(tg::normal<double>({2, 5, 4}));
  const Array weights = layer.attention_weights(x, x).value();
  const auto [output, before_dropout] = layer.with_weights(x, x, x);
  CHECK(before_dropout.value() == weights);  // in training mode
  CHECK(output.value() != layer.with_weights(x, x, x).first.value());
  tg::eval(layer);
  check_close(layer.with_weights(x, x, x).first.value(), layer(x).value());
}

// ---- parameters and tapes -----------------------------------------------------------------------------------------

TEST_CASE("set_value and mutable_value both count as a change between two backward passes") {
  const auto sweep = [](const Parameter& p) {
    tg::Tape tape;
    tg::sum(p * p).backward();
  };
  Parameter set(Array{1, 2}), changed(Array{1, 2}), neither(Array{1, 2});
  for (Parameter* p : {&set, &changed, &neither}) sweep(*p);
  set.set_value(Array{3, 4});
  changed.mutable_value()(0) = 3;
  for (Parameter* p : {&set, &changed, &neither}) sweep(*p);
  CHECK(set.sweeps().over_changed_values());
  CHECK(changed.sweeps().over_changed_values());
  CHECK_FALSE(neither.sweeps().over_changed_values());
}

TEST_CASE("A gradient that a hook gave another shape is refused, even with the same number of elements") {
  for (const bool on_parameter : {true, false})
    for (const tg::Shape& shape : {tg::Shape{3, 2}, tg::Shape{6}, tg::Shape{2, 1, 3}, tg::Shape{2, 2}}) {
      Parameter p(Array{{1, 2, 3}, {4, 5, 6}});
      tg::Tape tape;
      Tensor y = p * p;
      const auto reshaping = [&](Array& gradient) { gradient = Array(shape, 1.0); };
      if (on_parameter)
        p.register_hook(reshaping);
      else
        y.register_hook(reshaping);
      CHECK_THROWS_WITH_AS(tg::sum(y).backward(), Contains("[hook] expected the gradient of the"),
                           std::invalid_argument);
    }
}

TEST_CASE("The norm in a report does not overflow the element type") {
  const tg::Parameter<float> p(tg::Array<float>(tg::Shape{2}, 1.0f));
  tg::Tape tape({.profile = true});
  tg::sum(p * 3e30).backward();  // overflows a float when squared
  CHECK(contains(printed(tape), "4.24e+30"));
}

// ---- gradcheck's tolerance ----------------------------------------------------------------------------------------

TEST_CASE("gradcheck's tolerance is relative for large gradients and absolute for small ones") {
  Parameter w(Array{0.5});
  const auto large = [&](double error) { return [&, error] { return wrong_by(1e4 * w, 1 + error); }; };
  CHECK(gradcheck(large(0.7e-4), {{"w", &w}}, {.tolerance = 1e-4}));
  CHECK_FALSE(gradcheck(large(1.4e-4), {{"w", &w}}, {.tolerance = 1e-4}));
  const auto small = [&](double error) {
    return [&, error] {
      return tg::record("wrong", Array(1e-3 * w.value()), {w},
                        [error](const Array& dy, auto& dx) { dx[0] += 1e-3 * dy + error; });
    };
  };
  CHECK(gradcheck(small(0.7e-4), {{"w", &w}}, {.tolerance = 1e-4}));
  CHECK_FALSE(gradcheck(small(1.4e-4), {{"w", &w}}, {.tolerance = 1e-4}));
}

TEST_CASE("gradcheck's step grows with the value") {
  Parameter large(Array{1e6});
  // With h = 1e-6, (x + h)^2 - (x - h)^2 would be rounding error of numbers near 1e12.
  CHECK(gradcheck([&] { return large * large; }, {{"x", &large}}, {.tolerance = 1e-8}));
}
