#include "merges.hpp"

#include <queue>
#include <tuple>

namespace {

constexpr TokenId kMerged = -1;  // marks a token merged into its predecessor

/// A mergeable pair at the place of its left token. May be outdated when it is popped.
struct Candidate {
  std::uint32_t rank, place;
  std::uint64_t pair;
  TokenId merged;

  bool operator>(const Candidate& other) const { return std::tie(rank, place) > std::tie(other.rank, other.place); }
};

}  // namespace

Merges::Merges(const std::vector<Merge>& by_rank) {
  of_pair_.reserve(by_rank.size());
  for (const auto& [left, right, merged] : by_rank)
    of_pair_.emplace(pair_key(left, right), Ranked{static_cast<std::uint32_t>(of_pair_.size()), merged});
}

void Merges::apply(std::vector<TokenId>& tokens) const {
  const auto size = static_cast<std::uint32_t>(tokens.size());
  std::vector<std::uint32_t> next(size), previous(size);  // neighbors' places, or `size` for none
  for (std::uint32_t i = 0; i < size; ++i) next[i] = i + 1, previous[i] = i == 0 ? size : i - 1;

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto find = [&](std::uint32_t place) {
    if (place == size || next[place] == size) return;
    const std::uint64_t pair = pair_key(tokens[place], tokens[next[place]]);
    if (const auto found = of_pair_.find(pair); found != of_pair_.end())
      candidates.push({found->second.rank, place, pair, found->second.merged});
  };
  for (std::uint32_t i = 0; i < size; ++i) find(i);

  std::vector<Candidate> same;  // same rank; their results wait, even with a lower rank
  while (!candidates.empty()) {
    for (same.clear(); !candidates.empty() && (same.empty() || candidates.top().rank == same[0].rank); candidates.pop())
      same.push_back(candidates.top());
    for (const auto& [rank, left, pair, merged] : same) {
      const std::uint32_t right = next[left];
      if (tokens[left] == kMerged || right == size || pair_key(tokens[left], tokens[right]) != pair) continue;
      tokens[left] = merged;
      tokens[right] = kMerged;
      next[left] = next[right];
      if (next[right] != size) previous[next[right]] = left;
      find(previous[left]);
      find(left);
    }
  }
  std::erase(tokens, kMerged);
}
