#include "continuation.hpp"

#include <xtensor/xview.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace tg = tapegrad;

Continuation::Continuation(const LanguageModel<>& model, std::size_t context, examples::Ids ids,
                           const tg::SampleOptions& choice)
    : model_(model), context_(context), ids_(std::move(ids)), choice_(choice) {}

std::int64_t Continuation::next(std::int64_t first) {
  if (ids_.size() > context_) {
    ids_.erase(ids_.begin(), ids_.end() - static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, context_ / 2)));
    caches_.clear();
    cached_ = 0;
  }
  tg::IntArray input(tg::Shape{1, ids_.size() - cached_});
  std::copy(ids_.begin() + static_cast<std::ptrdiff_t>(cached_), ids_.end(), input.begin());
  const auto output = model_(input, caches_);  // (1, new ids, vocabulary)
  cached_ = ids_.size();

  tg::Array<float> logits = xt::view(output.value(), 0, output.shape()[1] - 1);  // (vocabulary)
  std::fill_n(logits.begin(), first, -std::numeric_limits<float>::infinity());
  ids_.push_back(tg::sample(logits, choice_)());
  return ids_.back();
}
