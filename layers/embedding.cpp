#include "embedding.hpp"

#include <algorithm>

#include "../engine/array/internal/layout.hpp"
#include "internal/sizes.hpp"
#include "layer_scope.hpp"
#include "skip_initialization.hpp"

namespace tapegrad {

template <class T>
Embedding<T>::Embedding(std::size_t num_embeddings, std::size_t embedding_dim, const EmbeddingOptions& options)
    : padding_idx(options.padding_idx) {
  detail::require_size("Embedding", "num_embeddings", num_embeddings);
  detail::require_size("Embedding", "embedding_dim", embedding_dim);
  detail::require_addressable<T>("Embedding", {num_embeddings, embedding_dim});
  const bool is_id = !padding_idx || (0 <= *padding_idx && static_cast<std::size_t>(*padding_idx) < num_embeddings);
  detail::require_in_range(is_id, "Embedding", "expected a padding_idx from 0 to ", num_embeddings - 1, ", got ",
                           padding_idx.value_or(0));
  Array<T> table = detail::initial_weights<T>({num_embeddings, embedding_dim}, [&](const Shape& shape) {
    return normal<T>(shape, 0, 1, detail::generator_or_default(options.generator));
  });
  if (padding_idx)
    std::fill_n(table.data() + static_cast<std::size_t>(*padding_idx) * embedding_dim, embedding_dim, T(0));
  weight = Parameter<T>(std::move(table));
}

template <class T> Tensor<T> Embedding<T>::operator()(const IntArray& ids) const {
  const LayerScope scope(*this);
  return scope.output(embedding(weight, ids, padding_idx));
}

template <class T>
Tensor<T> Embedding<T>::operator()(std::initializer_list<std::initializer_list<std::int64_t>> ids) const {
  for (const auto& row : ids)
    detail::require(row.size() == ids.begin()->size(), "Embedding", "expected rows of equal length, got ",
                    ids.begin()->size(), " and ", row.size(), " ids");
  return (*this)(IntArray(ids));
}

template struct Embedding<float>;
template struct Embedding<double>;

}  // namespace tapegrad
