#include "attention.hpp"

#include <cmath>

#include "../engine/ops/ops.hpp"
#include "internal/sizes.hpp"
#include "layer_scope.hpp"

namespace tapegrad {
namespace {

constexpr const char* kName = "MultiHeadAttention";

std::size_t or_else(std::size_t size, std::size_t otherwise) { return size == 0 ? otherwise : size; }

// Checks everything before the projections draw random numbers.
std::size_t checked_heads(std::size_t dim, std::size_t num_heads, const MultiHeadAttentionOptions& options) {
  detail::require_size(kName, "dim", dim);
  detail::require_size(kName, "num_heads", num_heads);
  detail::require_size(kName, "query_dim", or_else(options.query_dim, dim));
  detail::require_size(kName, "key_dim", or_else(options.key_dim, dim));
  detail::require_size(kName, "value_dim", or_else(options.value_dim, dim));
  detail::require(dim % num_heads == 0, kName, "expected dim divisible by num_heads, got dim ", dim, " and num_heads ",
                  num_heads);
  const std::size_t groups = or_else(options.num_kv_heads, num_heads), width = dim / num_heads;
  detail::require(num_heads % groups == 0, kName, "expected num_heads divisible by num_kv_heads, got num_heads ",
                  num_heads, " and num_kv_heads ", groups);
  if (const auto base = options.rotary_base) {
    detail::require(*base > 0 && std::isfinite(*base), kName, "expected a finite rotary_base above 0, got ", *base);
    detail::require(width % 2 == 0, kName, "expected heads of even width for rotary positions, got ", num_heads,
                    " heads of width ", width);
  }
  return num_heads;
}

LinearOptions of_projections(const MultiHeadAttentionOptions& options) {
  return {.bias = options.bias, .generator = options.generator};
}

// (B, T, G D) -> (B, H, T, D), with each of the G heads repeated for its group.
template <class T> Tensor<T> split_heads(const Tensor<T>& x, std::size_t groups, std::size_t heads) {
  const Shape& shape = x.shape();
  const Tensor<T> split = transpose(reshape(x, {shape[0], shape[1], groups, shape[2] / groups}), 1, 2);
  return groups == heads ? split : repeat_interleave(split, heads / groups, 1);
}

// The heads' outputs as a layer inside the attention: "attention.heads".
template <class Attend> auto in_heads(Attend attend) {
  const LayerScope scope("heads");
  return scope.output(attend());
}

template <class T>
void require_inputs(const MultiHeadAttention<T>& layer, const Tensor<T>& queries, const Tensor<T>& keys,
                    const Tensor<T>& values) {
  const auto is_batch = [&](const Tensor<T>& x) { return x.dimension() == 3 && x.shape()[0] == queries.shape()[0]; };
  detail::require(is_batch(queries) && is_batch(keys) && is_batch(values) && values.shape()[1] == keys.shape()[1],
                  kName, "expected queries (B, T, ", layer.q_proj.weight.shape()[1], "), keys (B, S, ",
                  layer.k_proj.weight.shape()[1], ") and values (B, S, ", layer.v_proj.weight.shape()[1], "), got ",
                  queries.shape(), ", ", keys.shape(), " and ", values.shape());
}

}  // namespace

template <class T>
MultiHeadAttention<T>::MultiHeadAttention(std::size_t dim, std::size_t heads, const MultiHeadAttentionOptions& options)
    : num_heads(checked_heads(dim, heads, options)),
      num_kv_heads(or_else(options.num_kv_heads, num_heads)),
      rotary_base(options.rotary_base),
      dropout(options.dropout),
      q_proj(or_else(options.query_dim, dim), dim, of_projections(options)),
      k_proj(or_else(options.key_dim, dim), dim / num_heads * num_kv_heads, of_projections(options)),
      v_proj(or_else(options.value_dim, dim), dim / num_heads * num_kv_heads, of_projections(options)),
      out_proj(dim, dim, of_projections(options)) {}

template <class T> Tensor<T> MultiHeadAttention<T>::operator()(const Tensor<T>& x, const AttentionMask& mask) const {
  return (*this)(x, x, x, mask);
}

template <class T>
Tensor<T> MultiHeadAttention<T>::operator()(const Tensor<T>& x, KeyValueCache<T>& cache,
                                            const AttentionMask& mask) const {
  require_inputs(*this, x, x, x);
  const LayerScope scope(*this);
  const Tensor<T> q = rotated(q_proj(x), num_heads, cache.size()), k = rotated(k_proj(x), num_kv_heads, cache.size());
  const Tensor<T> v = v_proj(x);
  return scope.output(out_proj(in_heads([&] { return cache.attend(q, k, v, num_heads, mask); })));
}

template <class T>
Tensor<T> MultiHeadAttention<T>::operator()(const Tensor<T>& queries, const Tensor<T>& keys, const Tensor<T>& values,
                                            const AttentionMask& mask) const {
  require_inputs(*this, queries, keys, values);
  const LayerScope scope(*this);
  // The projections check the widths.
  const Tensor<T> q = rotated(q_proj(queries), num_heads), k = rotated(k_proj(keys), num_kv_heads), v = v_proj(values);
  return scope.output(joined_heads(q, k, v, mask));
}

template <class T>
Tensor<T> MultiHeadAttention<T>::attend(const Tensor<T>& queries, const Tensor<T>& projected_keys,
                                        const Tensor<T>& projected_values, const AttentionMask& mask) const {
  detail::require_usage(!rotary_base, kName, "expected a layer without rotary positions, got rotary_base ",
                        rotary_base.value_or(0), "; call the layer with unprojected keys and values");
  const std::size_t k_width = k_proj.weight.shape()[0], v_width = v_proj.weight.shape()[0];
  const Shape &k = projected_keys.shape(), &v = projected_values.shape();
  detail::require(k.size() == 3 && v.size() == 3 && k[2] == k_width && v[2] == v_width, kName,
                  "expected keys after k_proj (B, S, ", k_width, ") and values after v_proj (B, S, ", v_width,
                  "), got ", k, " and ", v);
  const LayerScope scope(*this);
  return scope.output(joined_heads(q_proj(queries), projected_keys, projected_values, mask));
}

template <class T>
Tensor<T> MultiHeadAttention<T>::joined_heads(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                              const AttentionMask& mask) const {
  const AttentionOptions options{.dropout = dropout.training ? dropout.p : 0, .scale = {}};
  return out_proj(in_heads([&] { return multi_head_attention(q, k, v, num_heads, mask, options); }));
}

template <class T>
std::pair<Tensor<T>, Tensor<T>> MultiHeadAttention<T>::with_weights(const Tensor<T>& queries, const Tensor<T>& keys,
                                                                    const Tensor<T>& values,
                                                                    const AttentionMask& mask) const {
  require_inputs(*this, queries, keys, values);
  const LayerScope scope(*this);
  const Tensor<T> weights = attention_weights(queries, keys, mask);          // (B, H, T, S)
  const Tensor<T> v = split_heads(v_proj(values), num_kv_heads, num_heads);  // (B, H, S, D)
  const Shape& s = queries.shape();
  const Tensor<T> heads = in_heads([&] {
    const Tensor<T> y = matmul(dropout(weights), v);  // (B, H, T, D)
    return reshape(transpose(y, 1, 2), {s[0], s[1], out_proj.weight.shape()[1]});
  });
  return {scope.output(out_proj(heads)), weights};
}

template <class T>
Tensor<T> MultiHeadAttention<T>::attention_weights(const Tensor<T>& queries, const Tensor<T>& keys,
                                                   const AttentionMask& mask) const {
  detail::require(queries.dimension() == 3 && keys.dimension() == 3 && keys.shape()[0] == queries.shape()[0], kName,
                  "expected queries (B, T, ", q_proj.weight.shape()[1], ") and keys (B, S, ", k_proj.weight.shape()[1],
                  "), got ", queries.shape(), " and ", keys.shape());
  const LayerScope scope(*this);
  const Tensor<T> q = split_heads(rotated(q_proj(queries), num_heads), num_heads, num_heads);     // (B, H, T, D)
  const Tensor<T> k = split_heads(rotated(k_proj(keys), num_kv_heads), num_kv_heads, num_heads);  // (B, H, S, D)
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape()[3]));
  return masked_softmax(matmul(q, transpose(k, -1, -2)) * static_cast<T>(scale), mask);
}

// Applies rotary positions, if any, starting at `first`.
template <class T>
Tensor<T> MultiHeadAttention<T>::rotated(const Tensor<T>& x, std::size_t heads, std::size_t first) const {
  return rotary_base ? rotary_embedding(x, heads, {.base = *rotary_base, .first = first}) : x;
}

template struct MultiHeadAttention<float>;
template struct MultiHeadAttention<double>;

}  // namespace tapegrad
