/// A learned vector for every id.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "../engine/array/random.hpp"
#include "model/fields.hpp"
#include "weight.hpp"

namespace tapegrad {

/// Options of Embedding.
struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx{};  ///< id with a zero vector, excluded from training
  Generator* generator = nullptr;             ///< draws the initial weight; null: the default generator
};

/// A table of vectors indexed by ids, initially standard normal, as in PyTorch.
template <class T = float> struct Embedding {
  Weight<T> weight;                         ///< (num_embeddings, embedding_dim)
  std::optional<std::int64_t> padding_idx;  ///< id excluded from training
  TAPEGRAD_FIELDS(weight)
  TAPEGRAD_SETTINGS(padding_idx)

  /// Throws std::invalid_argument unless sizes are positive, std::out_of_range unless padding_idx is an id.
  Embedding(std::size_t num_embeddings, std::size_t embedding_dim, const EmbeddingOptions& options = {});

  /// ids: any shape S -> (S, embedding_dim). Throws std::out_of_range naming an id outside [0, num_embeddings).
  Tensor<T> operator()(const IntArray& ids) const;
  /// The same for ids in nested braces, `embedding({{id}})`, ambiguous as an IntArray.
  Tensor<T> operator()(std::initializer_list<std::initializer_list<std::int64_t>> ids) const;
};

}  // namespace tapegrad
