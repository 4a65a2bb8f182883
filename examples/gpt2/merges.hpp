/// Byte-pair encoding (Sennrich et al. 2016, arXiv:1508.07909).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

using TokenId = std::int32_t;

/// Two tokens that stand side by side, and the one that takes their place.
struct Merge {
  TokenId left, right, merged;
};

/// A pair as one number; pairs and their numbers have the same order.
inline std::uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

/// Merges in the order in which they are applied; a merge's place in it is its rank.
class Merges {
 public:
  /// Each pair once.
  explicit Merges(const std::vector<Merge>& by_rank);

  /// Merges the tokens of a word: as long as there are pairs that merge, all places of the pair of the lowest rank,
  /// from left to right, as GPT-2's own code does. (Hugging Face's takes a pair that such a merge has just made first
  /// where its rank is lower, as it never is among merges that were learned.) n tokens take O(n log n).
  void apply(std::vector<TokenId>& tokens) const;

 private:
  struct Ranked {
    std::uint32_t rank;
    TokenId merged;
  };
  std::unordered_map<std::uint64_t, Ranked> of_pair_;
};
