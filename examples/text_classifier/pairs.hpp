/// Embeddings of adjacent token pairs: "not good" differs in meaning from its words.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "../common/vocabulary.hpp"

/// The ids of two adjacent tokens.
using IdPair = std::array<std::int64_t, 2>;
using IdPairs = std::vector<IdPair>;

/// The pairs found at least twice in the texts, sorted.
IdPairs frequent_pairs(const std::vector<examples::Ids>& texts);

/// A learned vector for each known pair, and zeros for others.
struct PairEmbedding {
  tapegrad::Embedding<> embedding;  ///< row 0: all other pairs
  std::map<IdPair, std::int64_t> rows;
  TAPEGRAD_FIELDS(embedding)

  PairEmbedding(const IdPairs& pairs, std::size_t width, double init_std);

  /// The vectors of each token paired with its predecessor; zeros for the first. ids: (B, T) -> (B, T, width)
  tapegrad::Tensor<float> operator()(const tapegrad::IntArray& ids) const;
};
