#include "attention.hpp"

#include <cmath>

#include "../engine/ops/ops.hpp"
#include "internal/sizes.hpp"

namespace tapegrad {
namespace {

constexpr const char* kName = "MultiHeadAttention";

std::size_t or_dim(std::size_t width, std::size_t dim) { return width == 0 ? dim : width; }

// Everything at once, before the projections draw their random numbers.
std::size_t checked_heads(std::size_t dim, std::size_t num_heads, const MultiHeadAttentionOptions& options) {
  detail::require_size(kName, "dim", dim);
  detail::require_size(kName, "num_heads", num_heads);
  detail::require_size(kName, "query_dim", or_dim(options.query_dim, dim));
  detail::require_size(kName, "key_dim", or_dim(options.key_dim, dim));
  detail::require_size(kName, "value_dim", or_dim(options.value_dim, dim));
  detail::require(dim % num_heads == 0, kName, "expected a dim that num_heads divides, given dim ", dim,
                  " and num_heads ", num_heads);
  return num_heads;
}

LinearOptions of_projections(const MultiHeadAttentionOptions& options) {
  return {.bias = options.bias, .generator = options.generator};
}

// (B, T, H D) -> (B, H, T, D)
template <class T> Tensor<T> split_heads(const Tensor<T>& x, std::size_t heads) {
  const Shape& shape = x.shape();
  return transpose(reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), 1, 2);
}

template <class T>
void require_inputs(const MultiHeadAttention<T>& layer, const Tensor<T>& queries, const Tensor<T>& keys,
                    const Tensor<T>& values) {
  const auto is_batch = [&](const Tensor<T>& x) { return x.dimension() == 3 && x.shape()[0] == queries.shape()[0]; };
  detail::require(is_batch(queries) && is_batch(keys) && is_batch(values) && values.shape()[1] == keys.shape()[1],
                  kName, "expected queries (B, T, ", layer.q_proj.weight.shape()[1], "), keys (B, S, ",
                  layer.k_proj.weight.shape()[1], ") and values (B, S, ", layer.v_proj.weight.shape()[1], "), given ",
                  queries.shape(), ", ", keys.shape(), " and ", values.shape());
}

}  // namespace

template <class T>
MultiHeadAttention<T>::MultiHeadAttention(std::size_t dim, std::size_t heads, const MultiHeadAttentionOptions& options)
    : num_heads(checked_heads(dim, heads, options)),
      dropout(options.dropout),
      q_proj(or_dim(options.query_dim, dim), dim, of_projections(options)),
      k_proj(or_dim(options.key_dim, dim), dim, of_projections(options)),
      v_proj(or_dim(options.value_dim, dim), dim, of_projections(options)),
      out_proj(dim, dim, of_projections(options)) {}

template <class T> Tensor<T> MultiHeadAttention<T>::operator()(const Tensor<T>& x, const AttentionMask& mask) const {
  return (*this)(x, x, x, mask);
}

template <class T>
Tensor<T> MultiHeadAttention<T>::operator()(const Tensor<T>& x, KeyValueCache<T>& cache,
                                            const AttentionMask& mask) const {
  require_inputs(*this, x, x, x);
  const Tensor<T> q = q_proj(x), k = k_proj(x), v = v_proj(x);
  return out_proj(cache.attend(q, k, v, num_heads, mask));
}

template <class T>
Tensor<T> MultiHeadAttention<T>::operator()(const Tensor<T>& queries, const Tensor<T>& keys, const Tensor<T>& values,
                                            const AttentionMask& mask) const {
  require_inputs(*this, queries, keys, values);
  const Tensor<T> q = q_proj(queries), k = k_proj(keys), v = v_proj(values);  // the projections check the widths
  return out_proj(
      multi_head_attention(q, k, v, num_heads, mask, {.dropout = dropout.training ? dropout.p : 0, .scale = {}}));
}

template <class T>
std::pair<Tensor<T>, Tensor<T>> MultiHeadAttention<T>::with_weights(const Tensor<T>& queries, const Tensor<T>& keys,
                                                                    const Tensor<T>& values,
                                                                    const AttentionMask& mask) const {
  require_inputs(*this, queries, keys, values);
  const Tensor<T> weights = attention_weights(queries, keys, mask);                          // (B, H, T, S)
  const Tensor<T> heads = matmul(dropout(weights), split_heads(v_proj(values), num_heads));  // (B, H, T, D)
  const Shape& s = queries.shape();
  return {out_proj(reshape(transpose(heads, 1, 2), {s[0], s[1], out_proj.weight.shape()[1]})), weights};
}

template <class T>
Tensor<T> MultiHeadAttention<T>::attention_weights(const Tensor<T>& queries, const Tensor<T>& keys,
                                                   const AttentionMask& mask) const {
  detail::require(queries.dimension() == 3 && keys.dimension() == 3 && keys.shape()[0] == queries.shape()[0], kName,
                  "expected queries (B, T, ", q_proj.weight.shape()[1], ") and keys (B, S, ", k_proj.weight.shape()[1],
                  "), given ", queries.shape(), " and ", keys.shape());
  const Tensor<T> q = split_heads(q_proj(queries), num_heads);  // (B, H, T, D)
  const Tensor<T> k = split_heads(k_proj(keys), num_heads);     // (B, H, S, D)
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[3]));
  return masked_softmax(matmul(q, transpose(k, -1, -2)) * static_cast<T>(scale), mask);
}

template struct MultiHeadAttention<float>;
template struct MultiHeadAttention<double>;

}  // namespace tapegrad
