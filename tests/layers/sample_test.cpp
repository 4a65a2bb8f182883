#include <cmath>
#include <vector>

#include "in_double.hpp"
#include "refused.hpp"
#include "special_values.hpp"

namespace {

// The share of each id among draws from the logits.
std::vector<double> shares(const std::vector<double>& logits, tg::SampleOptions options, std::size_t draws = 20000) {
  tg::Generator generator(3);
  options.generator = &generator;
  Array rows(tg::Shape{draws, logits.size()});
  for (std::size_t i = 0; i < rows.size(); ++i) rows.data()[i] = logits[i % logits.size()];
  std::vector<double> counts(logits.size());
  for (const auto id : tg::sample(rows, options)) counts[static_cast<std::size_t>(id)] += 1 / double(draws);
  return counts;
}

void check_shares(const std::vector<double>& actual, const std::vector<double>& expected) {
  for (std::size_t id = 0; id < expected.size(); ++id) {
    CAPTURE(id);
    if (expected[id] == 0) CHECK(actual[id] == 0);
    CHECK(std::abs(actual[id] - expected[id]) < 0.015);  // four standard deviations
  }
}

}  // namespace

TEST_CASE("Ids are sampled with the softmax's probabilities, at any temperature") {
  const std::vector<double> logits{std::log(0.5), std::log(0.3), std::log(0.2), -kInfinity};
  check_shares(shares(logits, {}), {0.5, 0.3, 0.2, 0});
  check_shares(shares(logits, {.temperature = 0.5}), {0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38, 0});
  check_shares(shares({1000, 1000 + std::log(3), -1e300}, {}), {0.25, 0.75, 0});
  check_shares(shares({2, 1, 0}, {.temperature = 1e-300}), {1, 0, 0});
}

TEST_CASE_TEMPLATE("Adding a number to all logits changes no id, at any temperature and with any options", T, float,
                   double) {
  constexpr std::size_t rows = 200, vocabulary = 5;
  tg::Array<T> logits(tg::Shape{rows, vocabulary});
  for (std::size_t i = 0; i < logits.size(); ++i) logits.data()[i] = static_cast<T>((i * 7 + i / 3) % 11) / 64;
  for (const double temperature : {1e-4, 0.01, 0.1, 1.0, 10.0, 1e4})
    for (const std::size_t top_k : {0, 3})
      for (const double top_p : {1.0, 0.7}) {
        const auto ids = [&](T shift) {
          tg::Generator generator(4);
          const tg::Array<T> shifted = logits + shift;  // exact
          return tg::sample(shifted, {temperature, top_k, top_p, &generator});
        };
        INFO("temperature = ", temperature, ", top_k = ", top_k, ", top_p = ", top_p);
        const tg::IntArray expected = ids(0);
        for (const T shift : {8, 1024, -1024, 65536, -65536}) CHECK(ids(shift) == expected);
      }
}

TEST_CASE("top_k and then top_p drop ids, after the temperature") {
  const std::vector<double> logits{std::log(0.1), std::log(0.4), std::log(0.3), std::log(0.2)};
  check_shares(shares(logits, {.top_k = 2}), {0, 4.0 / 7, 3.0 / 7, 0});
  check_shares(shares(logits, {.top_k = 1}), {0, 1, 0, 0});
  check_shares(shares(logits, {.top_k = 9}), {0.1, 0.4, 0.3, 0.2});
  check_shares(shares(logits, {.top_p = 0.39}), {0, 1, 0, 0});
  check_shares(shares(logits, {.top_p = 0.41}), {0, 4.0 / 7, 3.0 / 7, 0});
  check_shares(shares(logits, {.top_p = 0.71}), {0, 4.0 / 9, 3.0 / 9, 2.0 / 9});
  check_shares(shares(logits, {.top_k = 2, .top_p = 0.56}), {0, 1, 0, 0});          // 0.4 are 57% of the top two
  check_shares(shares(logits, {.temperature = 0.5, .top_p = 0.52}), {0, 1, 0, 0});  // 0.16 of 0.3
  check_shares(shares({0, 0, 0, 0}, {.top_k = 2}), {0.5, 0.5, 0, 0});               // equal logits: the first ids
}

TEST_CASE("Temperature 0 selects the most likely id of each row, the first of several, without random numbers") {
  tg::Generator generator(1);
  const tg::Generator before = generator;
  const tg::Array<float> logits{{1, 3, 3}, {-1, -2, -3}};
  CHECK(tg::sample(logits, {.temperature = 0, .generator = &generator}) == tg::IntArray{1, 0});
  CHECK(generator == before);
}

TEST_CASE("Rows have independent random numbers, and equal seeds give equal ids") {
  const Array logits(tg::Shape{2, 50, 10}, 0.0);
  tg::Generator one(1), same(1);
  const tg::IntArray ids = tg::sample(logits, {.generator = &one});
  CHECK(ids.shape() == tg::Shape{2, 50});
  CHECK(std::count(ids.begin(), ids.end(), ids(0, 0)) < 50);
  CHECK(tg::sample(logits, {.generator = &same}) == ids);
  CHECK(tg::sample(logits, {.generator = &same}) != ids);
  tg::manual_seed(1);
  CHECK(tg::sample(logits) == ids);
  CHECK(tg::sample(Array(tg::Shape{0, 4}, 0.0)).shape() == tg::Shape{0});
}

TEST_CASE("Sampling refuses rows without a largest element, and options out of range") {
  const Array logits{{0, 1}, {2, 3}};
  check_refused("sample", "temperature of 0 or more, got -1", [&] { tg::sample(logits, {.temperature = -1}); });
  check_refused("sample", "temperature", [&] { tg::sample(logits, {.temperature = kNaN}); });
  check_refused("sample", "temperature", [&] { tg::sample(logits, {.temperature = kInfinity}); });
  check_refused("sample", "top_p in (0, 1], got 0", [&] { tg::sample(logits, {.top_p = 0}); });
  check_refused("sample", "got 1.5", [&] { tg::sample(logits, {.top_p = 1.5}); });
  check_refused("sample", "top_p", [&] { tg::sample(logits, {.top_p = kNaN}); });
  tg::Generator generator(3);
  const tg::Generator before = generator;
  for (const double temperature : {0.0, 1.0}) {
    const tg::SampleOptions options{.temperature = temperature, .generator = &generator};
    check_refused("sample", "nan in row 1", [&] { tg::sample(Array{{0, 1}, {2, kNaN}}, options); });
    check_refused("sample", "got -inf", [&] { tg::sample(Array{{-kInfinity, -kInfinity}}, options); });
    check_refused("sample", "got inf", [&] { tg::sample(Array{{kInfinity, 0}}, options); });
  }
  CHECK(generator == before);
  check_refused("sample", "(2, 0)", [] { tg::sample(Array(tg::Shape{2, 0})); });
  check_refused("sample", "shape ()", [] { tg::sample(Array(tg::Shape{})); });
}
