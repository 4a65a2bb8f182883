#include "report.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <ostream>
#include <span>
#include <utility>

#include "../common/columns.hpp"
#include "../common/printable.hpp"
#include "../common/progress.hpp"

namespace tg = tapegrad;
using examples::flush_left, examples::flush_right, examples::percent, examples::printable, examples::widest;
using examples::with_commas;

namespace {

/// Texts formatted for a table: printable, at most `max_length` characters.
std::vector<std::string> in_columns(const std::vector<std::string>& texts, std::size_t max_length) {
  std::vector<std::string> cells;
  for (const std::string& text : texts) cells.push_back(printable(text, max_length));
  return cells;
}

std::vector<std::string> label_columns(const std::vector<std::string>& labels) { return in_columns(labels, 30); }

/// Counts of (true label, predicted label).
using Counts = std::map<std::pair<std::size_t, std::size_t>, std::size_t>;

std::size_t count_of(const Counts& counts, std::size_t label, std::size_t predicted) {
  const auto found = counts.find({label, predicted});
  return found == counts.end() ? 0 : found->second;
}

/// Counts of a label: in the test data, predicted, and correctly predicted.
struct Occurrences {
  std::size_t tests = 0, predicted = 0, right = 0;

  /// By convention, 0 / 0 is 0. F1 is the harmonic mean of precision and recall.
  double precision() const { return share(right, predicted); }
  double recall() const { return share(right, tests); }
  double f1() const { return share(2 * right, tests + predicted); }

  static double share(std::size_t part, std::size_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

std::vector<Occurrences> occurrences_of(const Counts& counts, std::size_t labels) {
  std::vector<Occurrences> all(labels);
  for (const auto& [pair, count] : counts) {
    all[pair.first].tests += count;
    all[pair.second].predicted += count;
    if (pair.first == pair.second) all[pair.first].right = count;
  }
  return all;
}

void print_table(std::ostream& out, const Counts& counts, const std::vector<std::string>& labels) {
  const std::string corner = "true \\ predicted";
  const std::vector<std::string> names = label_columns(labels);
  const std::size_t first = std::max(corner.size(), widest(names)),
                    column = std::max<std::size_t>(7, widest(names)) + 2;
  out << flush_left(corner, first);
  for (const std::string& name : names) out << flush_right(name, column);
  out << '\n';
  for (std::size_t i = 0; i < names.size(); ++i) {
    out << flush_left(names[i], first);
    for (std::size_t j = 0; j < names.size(); ++j) out << flush_right(with_commas(count_of(counts, i, j)), column);
    out << '\n';
  }
}

void print_confused_pairs(std::ostream& out, Counts counts, const std::vector<Occurrences>& occurrences,
                          const std::vector<std::string>& labels) {
  std::erase_if(counts, [](const auto& entry) { return entry.first.first == entry.first.second; });
  out << with_commas(labels.size()) << " labels are too many for a table; the most frequent errors:\n";
  std::vector<std::pair<Counts::key_type, std::size_t>> pairs(counts.begin(), counts.end());
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const std::size_t shown = std::min<std::size_t>(20, pairs.size());

  std::vector<std::string> names{"true"}, others{"predicted"}, times{"times"};
  for (const auto& [pair, count] : std::span(pairs).first(shown)) {
    names.push_back(labels[pair.first]);
    others.push_back(labels[pair.second]);
    times.push_back(with_commas(count) + " of " + with_commas(occurrences[pair.first].tests));
  }
  names = label_columns(names);
  others = label_columns(others);
  for (std::size_t i = 0; i < names.size(); ++i)
    out << "  " << flush_left(names[i], widest(names)) << "  " << flush_left(others[i], widest(others)) << "  "
        << times[i] << '\n';
  if (shown < pairs.size()) out << "  ... and " << with_commas(pairs.size() - shown) << " more pairs\n";
}

/// Prints each label's precision, recall and F1, for many labels only the lowest F1, and their means. Labels neither in
/// the test data nor predicted have no scores.
void print_scores(std::ostream& out, const std::vector<Occurrences>& occurrences,
                  const std::vector<std::string>& labels) {
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), 0);
  if (labels.size() > many_labels) {
    out << with_commas(labels.size()) << " labels are too many for a table; those with the lowest F1:\n";
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return occurrences[a].f1() < occurrences[b].f1(); });
  }
  const std::vector<std::string> names = label_columns(labels);
  const std::size_t first = std::max<std::size_t>(16, widest(names));
  const auto print_row = [&](const std::string& name, const std::vector<std::string>& cells) {
    out << flush_left(name, first);
    for (const std::string& cell : cells) out << flush_right(cell, 9);
    out << '\n';
  };
  print_row("", {"precision", "recall", "F1", "tests"});
  for (const std::size_t i : std::span(order).first(std::min(many_labels, order.size()))) {
    const Occurrences& label = occurrences[i];
    if (label.tests + label.predicted == 0)
      print_row(names[i], {"-", "-", "-", "0"});
    else
      print_row(names[i],
                {percent(label.precision()), percent(label.recall()), percent(label.f1()), with_commas(label.tests)});
  }
  if (labels.size() > many_labels) out << "... and " << with_commas(labels.size() - many_labels) << " more labels\n";

  double precision = 0, recall = 0, f1 = 0, count = 0;
  for (const Occurrences& label : occurrences) {
    if (label.tests + label.predicted == 0) continue;
    precision += label.precision();
    recall += label.recall();
    f1 += label.f1();
    ++count;
  }
  print_row("mean", {percent(precision / count), percent(recall / count), percent(f1 / count)});
}

}  // namespace

std::string beside(const std::optional<double>& baseline) {
  return baseline ? ", naive Bayes " + percent(*baseline) : "";
}

double accuracy(const std::vector<Ranking>& predictions, const std::vector<std::int64_t>& truth) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) right += predictions[i].front().label == truth[i];
  return static_cast<double>(right) / static_cast<double>(truth.size());
}

std::vector<Ranking> rank(const tg::Array<float>& probabilities) {
  const std::size_t classes = probabilities.shape()[1], kept = std::min<std::size_t>(3, classes);
  std::vector<std::int64_t> order(classes);
  std::vector<Ranking> rankings(probabilities.shape()[0]);
  for (std::size_t i = 0; i < rankings.size(); ++i) {
    const float* row = probabilities.data() + i * classes;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                      [&](auto a, auto b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    for (std::size_t place = 0; place < kept; ++place) rankings[i].push_back({order[place], row[order[place]]});
  }
  return rankings;
}

void print_confusion(std::ostream& out, const std::vector<Ranking>& predictions, const std::vector<std::int64_t>& truth,
                     const std::vector<std::string>& labels, const std::optional<double>& baseline) {
  Counts counts;
  std::size_t right = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const std::int64_t predicted = predictions[i].front().label;
    ++counts[{static_cast<std::size_t>(truth[i]), static_cast<std::size_t>(predicted)}];
    if (predicted == truth[i]) ++right;
  }
  out << "test accuracy " << percent(accuracy(predictions, truth)) << ": " << with_commas(right) << " of "
      << with_commas(truth.size()) << " correct; guessing gives " << percent(1.0 / static_cast<double>(labels.size()))
      << beside(baseline) << "\n\n";
  const std::vector<Occurrences> occurrences = occurrences_of(counts, labels.size());
  if (labels.size() > many_labels)
    print_confused_pairs(out, std::move(counts), occurrences, labels);
  else
    print_table(out, counts, labels);
  out << '\n';
  print_scores(out, occurrences, labels);
}

void print_probabilities(std::ostream& out, const std::vector<std::string>& texts,
                         const std::vector<std::string>& about, const std::vector<Ranking>& predictions,
                         const std::vector<std::string>& labels) {
  std::vector<std::string> starts = in_columns(texts, 60);
  std::replace(starts.begin(), starts.end(), std::string(), std::string("(empty)"));
  const std::vector<std::string> about_columns = label_columns(about), names = label_columns(labels);
  const std::size_t start = widest(starts), about_width = widest(about_columns), column = widest(names);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    out << "  " << flush_left(starts[i], start);
    if (!about.empty()) out << "  " << flush_left(about_columns[i], about_width);
    for (const auto& [label, probability] : predictions[i])
      out << "  " << flush_right(names[static_cast<std::size_t>(label)], column)
          << flush_right(percent(static_cast<double>(probability)), 7);
    out << '\n';
  }
}
