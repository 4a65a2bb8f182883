#include "report.hpp"

#include <algorithm>
#include <iomanip>
#include <numeric>
#include <ostream>
#include <sstream>

#include "../common/columns.hpp"
#include "../common/progress.hpp"
#include "../common/text.hpp"

namespace tg = tapegrad;
using examples::flush_left, examples::flush_right, examples::widest, examples::with_commas;

namespace {

std::string percent(double share) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << 100 * share << '%';
  return text.str();
}

std::string ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-" : percent(static_cast<double>(part) / static_cast<double>(whole));
}

/// A long text's first characters.
std::string shortened(const std::string& text) {
  constexpr std::size_t most = 60;
  const examples::Text characters = examples::decode(text);
  return characters.size() <= most ? text : examples::encode(characters.substr(0, most - 1) + U'…');
}

}  // namespace

tg::IntArray confusion(const tg::Array<float>& probabilities, const std::vector<std::int64_t>& truth) {
  const std::size_t classes = probabilities.shape()[1];
  const tg::IntArray predicted = tg::argmax(probabilities, 1);
  tg::IntArray counts(tg::Shape{classes, classes}, 0);
  for (std::size_t i = 0; i < truth.size(); ++i) ++counts(truth[i], predicted(i));
  return counts;
}

void print_confusion(std::ostream& out, const tg::IntArray& counts, const std::vector<std::string>& labels) {
  const std::size_t classes = labels.size();
  std::int64_t right = 0, all = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    right += counts(i, i);
    for (std::size_t j = 0; j < classes; ++j) all += counts(i, j);
  }
  out << "test accuracy " << ratio(right, all) << ": " << with_commas(static_cast<std::size_t>(right)) << " of "
      << with_commas(static_cast<std::size_t>(all)) << " are right; guessing gives "
      << percent(1.0 / static_cast<double>(classes)) << "\n\n";

  const std::string corner = "true \\ predicted";
  const std::size_t first = std::max(corner.size(), widest(labels)),
                    column = std::max<std::size_t>(7, widest(labels)) + 2;
  out << flush_left(corner, first);
  for (const std::string& label : labels) out << flush_right(label, column);
  out << flush_right("right", 9) << '\n';
  for (std::size_t i = 0; i < classes; ++i) {
    std::int64_t row = 0;
    out << flush_left(labels[i], first);
    for (std::size_t j = 0; j < classes; ++j) {
      row += counts(i, j);
      out << flush_right(with_commas(static_cast<std::size_t>(counts(i, j))), column);
    }
    out << flush_right(ratio(counts(i, i), row), 9) << '\n';
  }
}

void print_probabilities(std::ostream& out, const std::vector<std::string>& texts,
                         const std::vector<std::string>& about, const tg::Array<float>& probabilities,
                         const std::vector<std::string>& labels) {
  const std::size_t classes = labels.size(), shown = std::min<std::size_t>(3, classes);
  std::vector<std::string> starts;
  for (const std::string& text : texts) starts.push_back(shortened(text));

  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::size_t> order(classes);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return probabilities(i, a) > probabilities(i, b); });
    out << "  " << flush_left(starts[i], widest(starts));
    if (!about.empty()) out << "  " << flush_left(about[i], widest(about));
    for (std::size_t rank = 0; rank < shown; ++rank)
      out << "  " << flush_right(labels[order[rank]], widest(labels))
          << flush_right(percent(static_cast<double>(probabilities(i, order[rank]))), 7);
    out << '\n';
  }
}
