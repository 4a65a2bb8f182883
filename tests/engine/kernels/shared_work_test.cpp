/// Operations split among threads, at sizes large enough for it and with distinct numbers: results must match those of
/// one thread and of plain loops.
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "close.hpp"
#include "poison.hpp"
#include "threads.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;

namespace {

// f's value and the gradients of its inputs, with random cotangents.
template <class T, class F>
std::vector<tg::Array<T>> results(std::size_t threads, const std::vector<tg::Shape>& shapes, F f) {
  const Threads limit(threads);
  tg::manual_seed(12);
  std::vector<tg::Parameter<T>> x;
  for (const tg::Shape& shape : shapes) x.emplace_back(tg::Array<T>(tg::uniform<double>(shape, -1, 1)));
  tg::Tape tape;
  const tg::Tensor<T> y = f(x);
  y.backward(tg::Array<T>(tg::uniform<double>(y.shape(), -1, 1)));
  std::vector<tg::Array<T>> all{y.value()};
  for (const auto& parameter : x) all.push_back(parameter.grad());
  return all;
}

// Compares f on several threads, in double and float, with g on one thread in double.
template <class F, class G> void check_same(const std::vector<tg::Shape>& shapes, F f, G g, double tolerance = 1e-4) {
  const auto expected = results<double>(1, shapes, g);
  for (const std::size_t threads : {1, 3, 7}) {
    CAPTURE(threads);
    const auto in_double = results<double>(threads, shapes, f);
    const auto in_float = results<float>(threads, shapes, f);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);  // 0: the value, then the gradient of each input
      check_close(in_double[i], expected[i], 1e-10);
      check_close(in_float[i], expected[i], tolerance);
    }
  }
}

// The product as a sum over the inner axis of broadcast operands, without BLAS.
template <class T> tg::Tensor<T> product(const tg::Tensor<T>& a, const tg::Tensor<T>& b) {
  return tg::sum(tg::unsqueeze(a, -1) * tg::unsqueeze(b, -3), -2);
}

}  // namespace

TEST_CASE("Gradients of a weight used twice accumulate, also if threads divide its inner extent") {
  const auto twice = [](const auto& x) { return tg::linear(x[0], x[1]) + tg::linear(2 * x[0], x[1]); };
  const auto once = [](const auto& x) { return 3 * tg::linear(x[0], x[1]); };
  check_same({{4500, 100}, {90, 100}}, twice, once, 1e-3);
  Array(tg::Shape{99 * 90 * 100}, std::numeric_limits<double>::quiet_NaN());  // more parts than chunks would read it
  const auto on_many = results<double>(100, {{4500, 100}, {90, 100}}, twice);
  check_close(on_many[2], results<double>(1, {{4500, 100}, {90, 100}}, once)[2], 1e-10);
}

TEST_CASE("An input and a weight of several products accumulate all gradients, whichever extent is longest") {
  const auto twice = [](const auto& x) { return tg::linear(x[0], x[1], x[2]) * 2 + tg::linear(x[0] * 3, x[1], x[2]); };
  const auto once = [](const auto& x) { return product(x[0], tg::transpose(x[1], 0, 1)) * 5 + x[2] * 3; };
  check_same({{20, 300}, {400, 300}, {400}}, twice, once, 1e-3);
  check_same({{300, 20}, {50, 20}, {50}}, twice, once, 1e-3);
  const auto matmul_twice = [](const auto& x) { return tg::matmul(x[0], x[1]) + tg::matmul(x[0] * 2, x[1] * 2); };
  const auto matmul_once = [](const auto& x) { return product(x[0], x[1]) * 5; };
  check_same({{64, 90}, {90, 64}}, matmul_twice, matmul_once, 1e-3);
  check_same({{3, 5, 4}, {3, 4, 6}}, matmul_twice, matmul_once);
}

TEST_CASE("A matrix read by many products accumulates all their gradients in order") {
  const auto f = [](const auto& x) { return tg::matmul(x[0], x[1]); };
  const auto in_steps = [](const auto& x) { return product(x[0], x[1]); };
  check_same({{6, 20}, {300, 20, 4}}, f, in_steps);
  check_same({{2, 300, 4, 20}, {2, 1, 20, 6}}, f, in_steps);
  check_same({{2, 1, 4, 20}, {2, 300, 20, 6}}, f, in_steps);
  // If threads wrote to the same matrix, updates would be lost or added in varying order.
  for (const auto& shapes :
       std::vector<std::vector<tg::Shape>>{{{60, 50}, {1000, 50, 40}}, {{2, 500, 40, 50}, {2, 1, 50, 60}}}) {
    const auto one_by_one = results<float>(1, shapes, f);
    for (const std::size_t threads : {2, 3, 7, 3, 2}) {
      CAPTURE(threads);
      CHECK(results<float>(threads, shapes, f) == one_by_one);
    }
  }
}

TEST_CASE_TEMPLATE("embedding looks up every id and accumulates its gradient, at widths that threads share", T, float,
                   double) {
  constexpr std::size_t kIds = 400, kWidth = 300, kRows = 50;
  tg::IntArray ids(tg::Shape{20, 20});
  for (std::size_t i = 0; i < kIds; ++i) ids.data()[i] = static_cast<std::int64_t>(i * i % 37 + i % 13);
  for (const std::size_t threads : {1, 3})
    for (const std::optional<std::int64_t> padding : {std::optional<std::int64_t>{}, std::optional<std::int64_t>{9}}) {
      CAPTURE(threads);
      const Threads limit(threads);
      tg::manual_seed(13);
      tg::Parameter<T> weight(tg::uniform<T>({kRows, kWidth}, -1, 1));
      const tg::Array<T> dy = tg::uniform<T>({20, 20, kWidth}, -1, 1);
      Array rows(dy.shape()), gradient(weight.shape(), 0.0);
      for (std::size_t i = 0; i < kIds; ++i) {
        const auto id = static_cast<std::size_t>(ids.data()[i]);
        for (std::size_t j = 0; j < kWidth; ++j) {
          rows.data()[i * kWidth + j] = weight.value()(id, j);
          if (ids.data()[i] != padding) gradient(id, j) += dy.data()[i * kWidth + j];
        }
      }
      poison(gradient.size() * sizeof(T));
      tg::Tape tape;
      const auto y = tg::embedding<T>(weight, ids, padding);
      CHECK(y.value() == rows);
      y.backward(dy);
      check_close(weight.grad(), gradient, std::is_same_v<T, float> ? 1e-5 : 1e-12);
    }
}
