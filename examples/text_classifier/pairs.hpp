/// Vectors for two tokens side by side: "not good" says something else than its words do.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "../common/vocabulary.hpp"

/// The ids of two tokens side by side.
using IdPair = std::array<std::int64_t, 2>;
using IdPairs = std::vector<IdPair>;

/// The pairs that texts have twice or more, sorted.
IdPairs frequent_pairs(const std::vector<examples::Ids>& texts);

/// A learned vector for each of some pairs; others have zeros.
struct PairEmbedding {
  tapegrad::Embedding<> embedding;  ///< row 0 stands for all other pairs
  std::map<IdPair, std::int64_t> rows;
  TAPEGRAD_FIELDS(embedding)

  PairEmbedding(const IdPairs& pairs, std::size_t width, double init_std);

  /// Of every token and the one before it; the first has none. ids: (B, T) -> (B, T, width)
  tapegrad::Tensor<float> operator()(const tapegrad::IntArray& ids) const;
};
