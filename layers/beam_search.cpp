#include "beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "../engine/array/array.hpp"
#include "../engine/array/internal/error.hpp"

namespace tapegrad::detail {
namespace {

constexpr const char* kName = "beam_search";

// A sequence that has not ended, and its row in the step's arrays.
struct Live {
  std::vector<std::int64_t> ids;  // starts with `begin`
  double log_probability = 0;
  std::int64_t row = 0;
};

// One more id after a live sequence.
struct Extension {
  std::size_t beam;
  std::int64_t id;
  double log_probability;
};

struct Entry {
  std::vector<Live> live;
  std::vector<Hypothesis> found;
};

Hypothesis hypothesis(const std::vector<std::int64_t>& ids, double log_probability, bool ended, double length_penalty) {
  const double summands = static_cast<double>(ids.size() - (ended ? 0 : 1));
  const double score = log_probability / std::pow((5 + summands) / 6, length_penalty);
  return {{ids.begin() + 1, ids.end()}, log_probability, score, ended};
}

// The sequences (R, length), and their rows (R).
IntArray prefixes_of(const std::vector<Entry>& entries, IntArray& rows) {
  std::vector<std::int64_t> ids, all_rows;
  for (const Entry& entry : entries)
    for (const Live& live : entry.live) {
      ids.insert(ids.end(), live.ids.begin(), live.ids.end());
      all_rows.push_back(live.row);
    }
  rows = int_array(all_rows);
  const std::size_t count = rows.size();
  return array<std::int64_t>(ids, {count, count == 0 ? 0 : ids.size() / count});
}

// The likeliest `count` extensions of an entry, whose first sequence is in row `first`.
std::vector<Extension> likeliest(const Entry& entry, std::size_t first, const Array<double>& logs, std::size_t count) {
  std::vector<Extension> all;
  for (std::size_t beam = 0; beam < entry.live.size(); ++beam)
    for (std::size_t id = 0; id < logs.shape()[1]; ++id) {
      const double log = logs(first + beam, id);
      require(log <= 1e-3, kName, "expected log-probabilities from step, at most 0 up to rounding, got ", log,
              " for id ", id, "; use tg::log_softmax");
      if (log > -std::numeric_limits<double>::infinity())
        all.push_back({beam, static_cast<std::int64_t>(id), entry.live[beam].log_probability + log});
    }
  const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
  std::ranges::partial_sort(all, last, {}, [](const Extension& extension) {
    return std::tuple(-extension.log_probability, extension.beam, extension.id);
  });
  all.erase(last, all.end());
  return all;
}

void extend(Entry& entry, std::size_t first, const Array<double>& logs, const BeamSearchOptions& options) {
  std::vector<Live> next;
  for (const Extension& extension : likeliest(entry, first, logs, options.beams - entry.found.size())) {
    std::vector<std::int64_t> ids = entry.live[extension.beam].ids;
    if (extension.id == options.end) {
      entry.found.push_back(hypothesis(ids, extension.log_probability, true, options.length_penalty));
    } else {
      ids.push_back(extension.id);
      next.push_back({std::move(ids), extension.log_probability, static_cast<std::int64_t>(first + extension.beam)});
    }
  }
  entry.live = std::move(next);
}

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(const BeamStep& step, std::size_t batch,
                                                 const BeamSearchOptions& options) {
  require(options.beams > 0, kName, "expected beams of 1 or more, got 0");
  require(options.max_length > 0, kName, "expected a max_length of at least 1, got 0");
  require(std::isfinite(options.length_penalty), kName, "expected a finite length_penalty, got ",
          options.length_penalty);
  require(batch > 0, kName, "expected a batch of at least 1, got 0");
  std::vector<Entry> entries(batch);
  for (std::size_t b = 0; b < batch; ++b) entries[b].live = {{{options.begin}, 0, static_cast<std::int64_t>(b)}};

  for (std::size_t length = 0; length < options.max_length; ++length) {
    IntArray rows;
    const IntArray prefixes = prefixes_of(entries, rows);
    if (rows.size() == 0) break;
    const Array<double> logs = step(prefixes, rows);
    require(logs.dimension() == 2 && logs.shape()[0] == rows.size(), kName, "expected log-probabilities (", rows.size(),
            ", vocabulary) from step, got ", logs.shape());
    require(options.end >= 0 && static_cast<std::size_t>(options.end) < logs.shape()[1], kName,
            "expected end in the vocabulary of ", logs.shape()[1], " ids, got ", options.end);
    std::size_t first = 0;
    for (Entry& entry : entries) {
      const std::size_t count = entry.live.size();
      extend(entry, first, logs, options);
      first += count;
    }
  }

  std::vector<std::vector<Hypothesis>> results;
  for (Entry& entry : entries) {
    for (const Live& live : entry.live)
      entry.found.push_back(hypothesis(live.ids, live.log_probability, false, options.length_penalty));
    std::ranges::sort(entry.found, [](const Hypothesis& a, const Hypothesis& b) {
      return a.score != b.score ? a.score > b.score : a.ids < b.ids;
    });
    results.push_back(std::move(entry.found));
  }
  return results;
}

}  // namespace tapegrad::detail
