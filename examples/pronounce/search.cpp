#include "search.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "../common/columns.hpp"
#include "../common/printable.hpp"
#include "../common/progress.hpp"

namespace pronounce {

namespace tg = tapegrad;
using examples::Ids, examples::percent, examples::Vocabulary;
using Tokens = std::vector<std::string>;

namespace {

/// The best targets of one batch, (B, S) padded.
void search(const Pronouncer& pronouncer, const examples::Padded& batch, std::size_t beams, std::span<Ids> found) {
  const EncoderDecoder<>& model = pronouncer.model;
  auto caches = model.caches(model.encode(batch.ids, batch.keep));
  tg::BoolArray keep = batch.keep;
  const auto step = [&](const tg::IntArray& prefixes, const tg::IntArray& rows) {
    for (auto& cache : caches) cache.select(rows);
    keep = tg::rows(keep, rows);
    const std::size_t length = prefixes.shape()[1];
    tg::IntArray last(tg::Shape{rows.size(), 1});
    for (std::size_t i = 0; i < rows.size(); ++i) last(i, 0) = prefixes(i, length - 1);
    tg::Array<float> logs = tg::log_softmax(tg::select(model(last, caches, keep), 1, 0), -1).value();
    for (std::size_t i = 0; i < rows.size(); ++i)  // no other marks
      std::fill_n(&logs(i, 0), Vocabulary::end, -std::numeric_limits<float>::infinity());
    return logs;
  };
  const auto results = tg::beam_search(
      step, found.size(),
      {.begin = Vocabulary::begin, .end = Vocabulary::end, .beams = beams, .max_length = pronouncer.target_length - 1});
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!results[i].empty()) found[i] = results[i].front().ids;
}

/// The distances from each beginning of `from` to each beginning of `to`: entry (i, j) at i * (to.size() + 1) + j.
std::vector<std::size_t> distances(const Tokens& from, const Tokens& to) {
  const std::size_t columns = to.size() + 1;
  std::vector<std::size_t> table((from.size() + 1) * columns);
  for (std::size_t i = 0; i <= from.size(); ++i)
    for (std::size_t j = 0; j <= to.size(); ++j) {
      std::size_t& here = table[i * columns + j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      const std::size_t swap = table[(i - 1) * columns + j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      here = std::min({swap, table[(i - 1) * columns + j] + 1, table[i * columns + j - 1] + 1});
    }
  return table;
}

/// Calls visit(right, found) for the edits of a shortest way from the found tokens to the right ones.
template <class Visit> void for_each_edit(const Tokens& found, const Tokens& right, Visit visit) {
  const std::size_t columns = right.size() + 1;
  const std::vector<std::size_t> table = distances(found, right);
  for (std::size_t i = found.size(), j = right.size(); i > 0 || j > 0;) {
    const std::size_t here = table[i * columns + j];
    if (i > 0 && j > 0 && here == table[(i - 1) * columns + j - 1] + (found[i - 1] == right[j - 1] ? 0 : 1)) {
      --i, --j;
      if (found[i] != right[j]) visit(right[j], found[i]);
    } else if (i > 0 && here == table[(i - 1) * columns + j] + 1) {
      visit(std::string(), found[--i]);
    } else {
      visit(right[--j], std::string());
    }
  }
}

Tokens without_stress(Tokens phonemes) {
  for (std::string& phoneme : phonemes)
    if (phoneme.back() >= '0' && phoneme.back() <= '2') phoneme.pop_back();
  return phonemes;
}

/// Adds a source with its right targets. Returns the closest of them.
std::size_t count(const Tokens& found, const std::vector<Tokens>& right, Errors& errors) {
  std::size_t closest = 0, edits = edit_distance(found, right.front());
  for (std::size_t i = 1; i < right.size(); ++i)
    if (const std::size_t other = edit_distance(found, right[i]); other < edits) closest = i, edits = other;
  ++errors.sources;
  errors.right += edits == 0 ? 1 : 0;
  errors.tokens += right[closest].size();
  errors.edits += edits;
  return closest;
}

}  // namespace

std::size_t edit_distance(const Tokens& from, const Tokens& to) { return distances(from, to).back(); }

std::vector<Ids> find_targets(const Pronouncer& pronouncer, const std::vector<Ids>& sources, std::size_t beams) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  const std::size_t batch_size = std::max<std::size_t>(1, 256 / beams);
  std::vector<Ids> in_order(sources.size()), targets(sources.size());
  for (std::size_t start = 0; start < order.size(); start += batch_size) {
    const std::size_t size = std::min(batch_size, order.size() - start);
    const auto chosen = std::span(order).subspan(start, size);
    search(pronouncer, examples::pad(sources, chosen), beams, std::span(in_order).subspan(start, size));
  }
  for (std::size_t i = 0; i < order.size(); ++i) targets[order[i]] = std::move(in_order[i]);
  return targets;
}

Report test(Pronouncer& pronouncer, const std::vector<Pair>& pairs, std::size_t beams) {
  std::map<Tokens, std::vector<Tokens>> right;  // the targets of each source
  for (const Pair& pair : pairs) right[pair.source].push_back(pair.target);
  std::vector<Ids> sources;
  for (const auto& [source, targets] : right) sources.push_back(pronouncer.encode_source(source));

  tg::eval(pronouncer.model);
  const std::vector<Ids> found = find_targets(pronouncer, sources, beams);
  tg::train(pronouncer.model);

  Report report;
  std::map<std::pair<std::string, std::string>, std::size_t> confusions;
  std::size_t i = 0;
  for (const auto& [source, targets] : right) {
    const Tokens tokens = pronouncer.shown_target(found[i++]);
    const std::size_t closest = count(tokens, targets, report.all);
    for_each_edit(tokens, targets[closest], [&](const std::string& a, const std::string& b) { ++confusions[{a, b}]; });
    if (!pronouncer.has_stress) continue;
    std::vector<Tokens> plain;
    for (const Tokens& target : targets) plain.push_back(without_stress(target));
    count(without_stress(tokens), plain, report.without_stress);
  }
  for (const auto& [tokens, number] : confusions) report.confusions.push_back({tokens.first, tokens.second, number});
  std::ranges::stable_sort(report.confusions, std::greater<>(), &Confusion::count);
  return report;
}

void print(const Report& report, bool has_stress) {
  const char* const of_tokens = has_stress ? "phoneme" : "token";
  std::cout << "\n"
            << examples::with_commas(report.all.sources) << (has_stress ? " test words: " : " test sources: ")
            << percent(report.all.right_share()) << " right, " << of_tokens << " error rate "
            << percent(report.all.edit_share()) << '\n';
  if (has_stress)
    std::cout << "without stress: " << percent(report.without_stress.right_share()) << " right, phoneme error rate "
              << percent(report.without_stress.edit_share()) << '\n';
  if (report.confusions.empty()) return;
  std::cout << "most frequent confusions:\n  right    found    times\n";
  const auto shown = [](const std::string& token) { return token.empty() ? "(none)" : examples::visible(token); };
  for (std::size_t i = 0; i < std::min<std::size_t>(10, report.confusions.size()); ++i) {
    const Confusion& confusion = report.confusions[i];
    std::cout << "  " << examples::flush_left(shown(confusion.right), 9)
              << examples::flush_left(shown(confusion.found), 9)
              << examples::flush_right(examples::with_commas(confusion.count), 5) << '\n';
  }
}

}  // namespace pronounce
