/// A learned vector for every id.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "../engine/array/random.hpp"
#include "model/fields.hpp"
#include "weight.hpp"

namespace tapegrad {

/// What may be set beside the sizes.
struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx{};  ///< this id's vector starts as zeros and never gets a gradient
  Generator* generator = nullptr;             ///< of the first weight; null: the default one
};

/// Looks ids up in a table. Starts with normally distributed numbers, as in PyTorch.
template <class T = float> struct Embedding {
  Weight<T> weight;                         ///< (num_embeddings, embedding_dim)
  std::optional<std::int64_t> padding_idx;  ///< the id whose vector is not learned
  TAPEGRAD_FIELDS(weight)
  TAPEGRAD_SETTINGS(padding_idx)

  /// Throws std::invalid_argument for a size that is not positive, std::out_of_range for a padding_idx that is no id.
  Embedding(std::size_t num_embeddings, std::size_t embedding_dim, const EmbeddingOptions& options = {});

  /// ids: any shape S -> (S, embedding_dim). Throws std::out_of_range naming an id outside [0, num_embeddings).
  Tensor<T> operator()(const IntArray& ids) const;
  /// The same for rows of ids in braces, `embedding({{id}})`, which C++ cannot convert to an IntArray when there is
  /// one.
  Tensor<T> operator()(std::initializer_list<std::initializer_list<std::int64_t>> ids) const;
};

}  // namespace tapegrad
