#include "sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "../engine/array/internal/error.hpp"

namespace tapegrad {
namespace {

// An id and its unnormalized probability.
struct Candidate {
  std::size_t id;
  double weight;
};

// Descending probability; equal ones by id.
bool likelier(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

double total(const std::vector<Candidate>& candidates) {
  return std::accumulate(candidates.begin(), candidates.end(), 0.0,
                         [](double sum, const Candidate& candidate) { return sum + candidate.weight; });
}

void keep_top_k(std::vector<Candidate>& candidates, std::size_t k) {
  if (k == 0 || k >= candidates.size()) return;
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(k);
  std::ranges::nth_element(candidates, end - 1, likelier);
  candidates.erase(end, candidates.end());
}

void keep_top_p(std::vector<Candidate>& candidates, double p) {
  if (p == 1) return;
  std::ranges::sort(candidates, likelier);
  const double enough = p * total(candidates);
  double sum = 0;
  std::size_t count = 0;
  while (count < candidates.size() && sum < enough) sum += candidates[count++].weight;
  candidates.resize(count);
}

// The id selected by a uniform number from [0, 1).
std::size_t draw(const std::vector<Candidate>& candidates, double number) {
  const double target = number * total(candidates);
  double sum = 0;
  for (const Candidate& candidate : candidates)
    if ((sum += candidate.weight) > target) return candidate.id;
  return candidates.front().id;  // rounding moved the target past the end
}

// The id of the largest logit of a row, the first of equals.
template <class T> std::size_t likeliest_id(const T* x, std::size_t vocabulary, std::size_t row) {
  const bool has_nan = std::any_of(x, x + vocabulary, [](T logit) { return std::isnan(logit); });
  const T* const largest = std::max_element(x, x + vocabulary);
  detail::require(!has_nan && std::isfinite(*largest), "sample", "expected a finite largest logit, got ",
                  has_nan ? T(NAN) : *largest, " in row ", row);
  return static_cast<std::size_t>(largest - x);
}

}  // namespace

template <class T> IntArray sample(const Array<T>& logits, const SampleOptions& options) {
  const auto& [temperature, top_k, top_p, generator] = options;
  detail::require(temperature >= 0 && std::isfinite(temperature), "sample",
                  "expected a finite temperature of 0 or more, got ", temperature);
  detail::require(top_p > 0 && top_p <= 1, "sample", "expected a top_p in (0, 1], got ", top_p);
  Shape rows = logits.shape();
  detail::require(!rows.empty() && rows.back() > 0, "sample", "expected logits (..., vocabulary), got shape ", rows);
  const std::size_t vocabulary = rows.back();
  rows.pop_back();

  IntArray ids(rows);  // initially the likeliest
  for (std::size_t row = 0; row < ids.size(); ++row)
    ids.data()[row] = static_cast<std::int64_t>(likeliest_id(logits.data() + row * vocabulary, vocabulary, row));
  if (temperature == 0) return ids;

  const std::uint64_t key = detail::generator_or_default(generator).next_key();
  std::vector<Candidate> candidates;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    const T* const x = logits.data() + row * vocabulary;
    const double largest = x[ids.data()[row]];
    candidates.clear();
    for (std::size_t id = 0; id < vocabulary; ++id)
      candidates.push_back({id, std::exp((double(x[id]) - largest) / temperature)});
    keep_top_k(candidates, top_k);
    keep_top_p(candidates, top_p);
    ids.data()[row] = static_cast<std::int64_t>(draw(candidates, random_uniform(key, row)));
  }
  return ids;
}

template IntArray sample(const Array<float>&, const SampleOptions&);
template IntArray sample(const Array<double>&, const SampleOptions&);

}  // namespace tapegrad
