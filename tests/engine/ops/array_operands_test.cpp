// Every operation takes arrays and expressions as constants.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "paths.hpp"

namespace tg = tapegrad;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(TAPEGRAD_SOURCES "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T> bool same(const tg::Array<T>& a, const tg::Array<T>& b) { return a == b; }
template <class T> bool same(const tg::Tensor<T>& a, const tg::Tensor<T>& b) { return a.value() == b.value(); }
template <class T> bool same(const tg::ValuesAndIndices<T>& a, const tg::ValuesAndIndices<T>& b) {
  return same(a.values, b.values) && a.indices == b.indices;
}
template <class T> bool same(const std::vector<tg::Tensor<T>>& a, const std::vector<tg::Tensor<T>>& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i) equal = same(a[i], b[i]);
  return equal;
}
inline bool same(double a, double b) { return a == b; }

// Calls with an array, with an expression and with a tensor of the same numbers.
template <class T, class F> void check_unary(const tg::Array<T>& a, F f) {
  tg::manual_seed(1);
  const auto expected = f(tg::Tensor<T>(a));
  tg::manual_seed(1);
  CHECK(same(f(a), expected));
  tg::manual_seed(1);
  CHECK(same(f(a + T(0)), expected));
}

// The same with two operands, of which each or both are arrays.
template <class T, class F> void check_binary(const tg::Array<T>& a, const tg::Array<T>& b, F f) {
  const tg::Tensor<T> x(a), y(b);
  const tg::Parameter<T> p(a), q(b);
  const auto expected = f(x, y);
  CHECK(same(f(a, y), expected));
  CHECK(same(f(x, b), expected));
  CHECK(same(f(a, b), expected));
  CHECK(same(f(a + T(0), q), expected));
  CHECK(same(f(p, b + T(0)), expected));
}

}  // namespace

TEST_CASE("Every operation in ops.hpp is called below") {
  const std::string operations = text_of("engine/ops/ops.hpp");
  const std::string calls = text_of("tests/engine/ops/array_operands_test.cpp");
  const std::regex prototype(R"(template <class T[^{};]*? (\w+)\([^{};]*Tensor<T>[&>])");
  std::set<std::string> names;
  for (std::sregex_iterator match(operations.begin(), operations.end(), prototype), end; match != end; ++match)
    names.insert((*match)[1]);
  CHECK(names.size() > 50);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(calls.find("return tg::" + name + "(") != std::string::npos);
  }
}

TEST_CASE_TEMPLATE("Operations on one array compute what they compute on a tensor", T, float, double) {
  const tg::Array<T> a{{T(0.5), T(1), T(0.25)}, {T(2), T(0.75), T(1.5)}};
  const tg::BoolArray mask{{true, false, true}, {false, true, false}};
  const auto check = [&](auto f) { check_unary(a, f); };
  check([](const auto& x) { return tg::pow(x, 2); });
  check([](const auto& x) { return tg::pow(2, x); });
  check([](const auto& x) { return tg::exp(x); });
  check([](const auto& x) { return tg::log(x); });
  check([](const auto& x) { return tg::sqrt(x); });
  check([](const auto& x) { return tg::abs(x); });
  check([](const auto& x) { return tg::tanh(x); });
  check([](const auto& x) { return tg::sigmoid(x); });
  check([](const auto& x) { return tg::relu(x); });
  check([](const auto& x) { return tg::clamp(x, {}, 1); });
  check([](const auto& x) { return tg::silu(x); });
  check([](const auto& x) { return tg::softplus(x, 2); });
  check([](const auto& x) { return tg::gelu(x, tg::Gelu::tanh); });
  check([&](const auto& x) { return tg::masked_fill(x, mask, -1); });
  check([](const auto& x) { return tg::dropout(x, 0.5); });
  check([](const auto& x) { return tg::transpose(x, 0, 1); });
  check([](const auto& x) { return tg::permute(x, {1, 0}); });
  check([](const auto& x) { return tg::reshape(x, {3, -1}); });
  check([](const auto& x) { return tg::unsqueeze(x, 0); });
  check([](const auto& x) { return tg::squeeze(x); });
  check([](const auto& x) { return tg::squeeze(x, 0); });
  check([](const auto& x) { return tg::expand(x, {2, 2, 3}); });
  check([](const auto& x) { return tg::repeat(x, {2, 1}); });
  check([](const auto& x) { return tg::repeat_interleave(x, 2, 0); });
  check([](const auto& x) { return tg::select(x, 0, 1); });
  check([](const auto& x) { return tg::narrow(x, 1, 1, 2); });
  check([](const auto& x) { return tg::split(x, 1); });
  check([](const auto& x) { return tg::roll(x, 1, 1); });
  check([](const auto& x) { return tg::roll(x, 1); });
  check([](const auto& x) { return tg::tril(x); });
  check([](const auto& x) { return tg::triu(x, 1); });
  check([](const auto& x) { return tg::sum(x); });
  check([](const auto& x) { return tg::sum(x, {0}, tg::keepdims); });
  check([](const auto& x) { return tg::mean(x, {-1}); });
  check([](const auto& x) { return tg::var(x, {1}, 0); });
  check([](const auto& x) { return tg::amax(x, {1}); });
  check([](const auto& x) { return tg::gather(x, 1, {{0, 2}, {1, 1}}); });
  check([](const auto& x) { return tg::argmax(x, 1); });
  check([](const auto& x) { return tg::max(x, 1); });
  check([](const auto& x) { return tg::topk(x, 2); });
  check([](const auto& x) { return tg::softmax(x, -1); });
  check([](const auto& x) { return tg::log_softmax(x, -1); });
  check([](const auto& x) { return tg::layer_norm(x, {}, {}); });
  check([](const auto& x) { return tg::rms_norm(x); });
  check([](const auto& x) { return tg::embedding(x, {1, 0, 1}); });
  check([](const auto& x) { return tg::masked_softmax(x, tg::AttentionMask::causal()); });
  check([](const auto& x) { return tg::cross_entropy(x, {2, 0}, {.label_smoothing = 0.1}); });
  check([](const auto& x) { return tg::accuracy(x, {1, 0}); });
  check([](const auto& x) { return tg::rotary_embedding(tg::reshape(x, {1, 3, 2}), 1); });
  check_unary(tg::Array<T>(a(0, 0) + tg::Array<T>(tg::Shape{1, 3, 2}, T(1))),
              [](const auto& x) { return tg::rotary_embedding(x, 1, {.first = 2}); });
}

TEST_CASE_TEMPLATE("Operations on several operands take arrays in place of each", T, float, double) {
  const tg::Array<T> a{{T(0.5), T(1), T(0.25)}, {T(2), T(0.75), T(1.5)}}, b{{T(1), T(1), T(4)}, {T(0.5), T(2), T(1)}};
  const tg::Array<T> square{{T(1), T(2), T(3)}, {T(0), T(1), T(2)}, {T(1), T(1), T(1)}};
  const tg::BoolArray mask{{true, false, true}, {false, true, false}};
  const auto check = [&](auto f) { check_binary(a, b, f); };
  check([](const auto& x, const auto& y) { return tg::pow(x, y); });
  check([](const auto& x, const auto& y) { return tg::maximum(x, y); });
  check([](const auto& x, const auto& y) { return tg::minimum(x, y); });
  check([&](const auto& x, const auto& y) { return tg::where(mask, x, y); });
  check([](const auto& x, const auto& y) { return tg::cat({x, y}, 1); });
  check([](const auto& x, const auto& y) { return tg::stack({x, y}); });
  check([](const auto& x, const auto& y) { return tg::linear(x, y); });
  check([](const auto& x, const auto& y) { return tg::einsum("ij,kj->ik", x, y); });
  check([](const auto& x, const auto& y) { return tg::scaled_dot_product_attention(x, y, y, {}, {.scale = 0.5}); });
  check([](const auto& x, const auto& y) { return tg::cross_entropy(x, y, {.label_smoothing = 0.1}); });
  check([](const auto& x, const auto& y) {
    return tg::binary_cross_entropy_with_logits(x, y, {.weight = {{2, 1, 1}}});
  });
  check([](const auto& x, const auto& y) { return tg::mse_loss(x, y); });
  check_binary(a, square, [](const auto& x, const auto& y) { return tg::matmul(x, y); });
  check_binary(a, tg::Array<T>{1, 2, 3}, [](const auto& x, const auto& y) { return tg::layer_norm(x, y, {}); });
  check_binary(a, tg::Array<T>{1, 2, 3}, [](const auto& x, const auto& y) { return tg::rms_norm(x, y); });
  check_binary(a, tg::Array<T>(tg::Shape{}, 3),
               [&](const auto& x, const auto& y) { return tg::masked_fill(x, mask, y); });
  const tg::Array<T> heads(tg::Shape{1, 2, 4}, T(0.5));
  check_binary(heads, heads, [](const auto& x, const auto& y) { return tg::multi_head_attention(x, y, y, 2); });
}

TEST_CASE("Gradients flow to the tensor next to an array") {
  const tg::Array<double> a{{1, 2}, {3, 4}};
  const tg::Parameter<double> w(a);
  const tg::Tape tape;
  (tg::sum(tg::matmul(w, a)) + tg::mse_loss(a + 1, w) + tg::sum(tg::where({{true, false}, {false, true}}, w, a)))
      .backward();
  CHECK(w.grad() == tg::Array<double>{{3 - 0.5 + 1, 7 - 0.5}, {3 - 0.5, 7 - 0.5 + 1}});
}

TEST_CASE("xtensor's functions still apply to arrays when found by their arguments") {
  const tg::Array<double> a{{1, -2}, {3, 4}};
  CHECK(tg::Array<double>(abs(a)) == tg::Array<double>{{1, 2}, {3, 4}});
  static_assert(!std::same_as<decltype(abs(a)), tg::Tensor<double>>);
  static_assert(!std::same_as<decltype(sum(a)), tg::Tensor<double>>);
  static_assert(!std::same_as<decltype(maximum(a, a)), tg::Tensor<double>>);
}
