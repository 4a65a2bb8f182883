/// Beam search for the likeliest sequences.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "../engine/array/array.hpp"

namespace tapegrad {

/// Options of beam_search.
struct BeamSearchOptions {
  std::int64_t begin;          ///< the id before the first one, not part of the result
  std::int64_t end;            ///< the id that ends a sequence, not part of the result
  std::size_t beams = 4;       ///< number of sequences kept in each step; 1: greedy search
  std::size_t max_length = 0;  ///< stops after this number of ids, including `end`; at least 1
  double length_penalty = 0;   ///< alpha of the score (Wu et al. 2016, arXiv:1609.08144); larger favors long sequences
};

/// A sequence found by beam_search.
struct Hypothesis {
  std::vector<std::int64_t> ids;  ///< without `begin` and `end`
  double log_probability;         ///< the sum over the ids, and over `end` if it was reached
  double score;                   ///< log_probability / ((5 + n) / 6)^alpha with n summands
  bool ended;                     ///< false if it stopped at max_length
};

namespace detail {

using BeamStep = std::function<Array<double>(const IntArray& prefixes, const IntArray& rows)>;

std::vector<std::vector<Hypothesis>> beam_search(const BeamStep& step, std::size_t batch,
                                                 const BeamSearchOptions& options);

template <class Step> BeamStep beam_step(Step& step) {
  return [&step](const IntArray& prefixes, [[maybe_unused]] const IntArray& rows) -> Array<double> {
    if constexpr (std::invocable<Step&, const IntArray&, const IntArray&>)
      return step(prefixes, rows);
    else
      return step(prefixes);
  };
}

}  // namespace detail

/// Searches for the likeliest sequences: each step extends all kept sequences by all ids and keeps the likeliest
/// `beams`. An ended sequence still occupies one of the beams. Returns at most `beams` sequences for each batch entry,
/// the best score first; equal sums of log-probabilities prefer earlier sequences and smaller ids.
///
/// step(prefixes) returns the log-probabilities of the next id, (R, T) -> (R, vocabulary); -inf excludes an id.
/// Prefixes start with `begin`; those that ended are left out. For step(prefixes, rows), rows (R) holds the row of each
/// prefix in the previous call, at first 0, ..., batch - 1. A step with a cache selects these rows, then runs the last
/// ids alone:
///
///     tg::beam_search([&](const tg::IntArray& prefixes, const tg::IntArray& rows) {
///       cache.select(rows);
///       return tg::log_softmax(next_logits(prefixes, cache), -1).value();
///     }, batch, {.begin = 1, .end = 2, .max_length = 30});
///
/// Throws std::invalid_argument if beams, max_length or batch is 0, if the length penalty is not finite, if `end` is
/// outside of the vocabulary, and for NaN, values above 0 or another shape from `step`.
template <class Step>
std::vector<std::vector<Hypothesis>> beam_search(Step&& step, std::size_t batch, const BeamSearchOptions& options) {
  return detail::beam_search(detail::beam_step(step), batch, options);
}

/// The same for one sequence.
template <class Step> std::vector<Hypothesis> beam_search(Step&& step, const BeamSearchOptions& options) {
  return beam_search(step, 1, options).front();
}

}  // namespace tapegrad
