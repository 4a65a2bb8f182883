/// Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

using TokenId = std::int32_t;

/// Two adjacent tokens and their replacement.
struct Merge {
  TokenId left, right, merged;
};

/// A pair as one number. Preserves the order of pairs.
inline std::uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

/// Merges in order of application. A merge's index is its rank.
class Merges {
 public:
  /// Requires distinct pairs.
  explicit Merges(const std::vector<Merge>& by_rank);

  /// Merges the tokens of a word in O(n log n): repeatedly merges all occurrences of the pair with the lowest rank,
  /// from left to right, like GPT-2's own code. (Hugging Face's code prefers a pair just created by such a merge if its
  /// rank is lower, never the case for trained merges.)
  void apply(std::vector<TokenId>& tokens) const;

 private:
  struct Ranked {
    std::uint32_t rank;
    TokenId merged;
  };
  std::unordered_map<std::uint64_t, Ranked> of_pair_;
};
