#include "../../../examples/text_classifier/naive_bayes.hpp"

#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace tg = tapegrad;

namespace {

const std::vector<examples::Ids> texts{{4, 5}, {4, 4}, {6}, {6, 5}};
const std::vector<std::int64_t> labels{0, 0, 1, 2};

/// The logarithms of the products, minus their mean. -> (1, labels)
tg::Array<float> centered(const std::vector<double>& products) {
  double mean = 0;
  for (const double product : products) mean += std::log(product) / static_cast<double>(products.size());
  tg::Array<float> scores(tg::Shape{1, products.size()});
  for (std::size_t i = 0; i < products.size(); ++i) scores(0, i) = static_cast<float>(std::log(products[i]) - mean);
  return scores;
}

}  // namespace

TEST_CASE("NaiveBayes counts each token and pair of a text once, with add-one smoothing") {
  const NaiveBayes bayes(texts, labels, 3);
  CHECK(!bayes.empty());
  // Labels 0, 1, 2 have 2, 1, 1 texts with 5, 1, 3 features: 4 5 4-5 and 4 4-4; 6; 6 5 6-5. Six of them are distinct.
  CHECK_CLOSE(bayes.scores({{4}}), centered({3 * 3 / 11., 2 * 1 / 7., 2 * 1 / 9.}), 1e-6);
  CHECK_CLOSE(bayes.scores({{4, 4}}), centered({3 * 3 * 2 / 121., 2 / 49., 2 / 81.}), 1e-6);
  CHECK_CLOSE(bayes.scores({{6, 5}}), centered({3 * 1 * 2 * 1 / 1331., 2 * 2 / 343., 2 * 2 * 2 * 2 / 729.}), 1e-6);
}

TEST_CASE("NaiveBayes ignores unknown features, and knows only the labels' frequency of an empty text") {
  const NaiveBayes bayes(texts, labels, 3);
  CHECK_CLOSE(bayes.scores({{}}), centered({3, 2, 2}), 1e-6);
  CHECK_CLOSE(bayes.scores({{7, 8}}), centered({3, 2, 2}), 1e-6);
  CHECK_CLOSE(bayes.scores({{7, 4, 8}}), bayes.scores({{4}}), 0);
  const NaiveBayes none({}, {}, 3);
  CHECK(none.empty());
  CHECK_CLOSE(none.scores({{4}}), centered({1, 1, 1}), 0);
}

TEST_CASE("NaiveBayes scores a training text without its own features, and counts them again") {
  NaiveBayes bayes(texts, labels, 3);
  const tg::Array<float> before = bayes.scores(texts), left_out = bayes.left_out_scores(texts, labels);
  CHECK((left_out.shape() == tg::Shape{4, 3}));
  // Without {4, 5}, label 0 has the features 4 and 4-4; 4-5 is unknown.
  const tg::Array<float> expected = centered({3 * 2 * 1 / 64., 2 * 1 * 1 / 49., 2 * 1 * 2 / 81.});
  for (std::size_t label = 0; label < 3; ++label) CHECK(left_out(0, label) == doctest::Approx(expected(0, label)));
  CHECK_CLOSE(bayes.scores(texts), before, 0);
}

TEST_CASE("NaiveBayes has the same scores after saving its counts, and refuses other settings") {
  const NaiveBayes bayes(texts, labels, 3);
  const auto settings = nlohmann::json::parse(bayes.settings().dump());
  CHECK_CLOSE(NaiveBayes(settings, 3).scores(texts), bayes.scores(texts), 0);
  CHECK_THROWS_AS(NaiveBayes(settings, 2), std::invalid_argument);
  CHECK_THROWS_AS(NaiveBayes(nlohmann::json::object(), 3), nlohmann::json::exception);
}
