#include "folds.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>

#include "../common/interrupt.hpp"
#include "../common/progress.hpp"
#include "classifier.hpp"
#include "report.hpp"
#include "split.hpp"
#include "train.hpp"

using examples::percent;

namespace {

double mean(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

/// The sample standard deviation of at least two numbers.
double standard_deviation(const std::vector<double>& numbers) {
  const double middle = mean(numbers);
  double sum = 0;
  for (const double number : numbers) sum += (number - middle) * (number - middle);
  return std::sqrt(sum / static_cast<double>(numbers.size() - 1));
}

void print_spread(std::ostream& out, const std::vector<double>& accuracies, double baseline) {
  out << "\nmean accuracy of " << accuracies.size() << " folds " << percent(mean(accuracies));
  if (accuracies.size() > 1) out << ", standard deviation " << percent(standard_deviation(accuracies));
  const auto [lowest, highest] = std::minmax_element(accuracies.begin(), accuracies.end());
  out << ", from " << percent(*lowest) << " to " << percent(*highest) << beside(baseline) << "\n\n";
}

}  // namespace

int cross_validate(const std::vector<Example>& texts, const Options& options) {
  if (options.folds > texts.size())
    throw std::runtime_error("--folds: expected at most " + std::to_string(texts.size()) +
                             ", the number of texts, got " + std::to_string(options.folds));
  const std::vector<std::string> labels = labels_of(texts);
  const std::vector<std::size_t> part_of = deal(texts, options.folds);

  std::vector<Ranking> predictions;  // of all folds in order, like the true labels
  std::vector<std::int64_t> truth;
  std::vector<double> accuracies, baselines;
  const examples::Interrupt interrupt;
  for (std::size_t part = 0; part < options.folds; ++part) {
    const Data data = fold(texts, part_of, part);
    auto [classifier, status] = learn(data.train, labels, options);
    if (status != 0) break;
    const Sequences tests = classifier.encode(data.test);
    const std::vector<Ranking> of_fold = classifier.predict(tests.ids);
    accuracies.push_back(accuracy(of_fold, tests.labels));
    baselines.push_back(*classifier.baseline(tests));
    std::cout << "fold " << part + 1 << " of " << options.folds << ": accuracy " << percent(accuracies.back()) << " of "
              << examples::with_commas(tests.ids.size()) << " texts" << beside(baselines.back()) << std::endl;
    predictions.insert(predictions.end(), of_fold.begin(), of_fold.end());
    truth.insert(truth.end(), tests.labels.begin(), tests.labels.end());
  }
  if (accuracies.empty()) return interrupt.status();
  print_spread(std::cout, accuracies, mean(baselines));
  print_confusion(std::cout, predictions, truth, labels, mean(baselines));
  return interrupt.status();
}
