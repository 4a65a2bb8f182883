#include "transformer.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

#include "../engine/array/batches.hpp"
#include "../engine/kernels/rows.hpp"
#include "../engine/ops/ops.hpp"
#include "internal/sizes.hpp"
#include "layer_scope.hpp"

namespace tapegrad {
namespace {

constexpr const char* kDecoder = "TransformerDecoderBlock";

template <class T> Tensor<T> activate(const Tensor<T>& x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu(x, Gelu::tanh);
    case Activation::silu:
    case Activation::swiglu:  // for the gate
      return silu(x);
  }
  detail::fail<std::invalid_argument>("FeedForward", "expected a value of tg::Activation, got ",
                                      static_cast<int>(activation));
}

std::size_t width_inside(std::size_t width, const TransformerBlockOptions& options) {
  return options.feed_forward_width == 0 ? 4 * width : options.feed_forward_width;
}

// Checks before any part draws random numbers.
std::size_t checked_width(const char* name, std::size_t width, const TransformerBlockOptions& options) {
  detail::require_size(name, "width", width);
  detail::require_size(name, "feed_forward_width", width_inside(width, options));
  return width;
}

template <class T> LayerNorm<T> make_norm(std::size_t width, const TransformerBlockOptions& options) {
  const Extents shape{static_cast<std::ptrdiff_t>(width)};
  LayerNorm<T> norm =
      options.normalization == Normalization::rms
          ? RMSNorm<T>(shape, {.eps = options.norm_eps.value_or(RMSNormOptions().eps)})
          : LayerNorm<T>(shape, {.eps = options.norm_eps.value_or(LayerNormOptions().eps), .bias = options.bias});
  if (options.norm == NormPlacement::none) norm.weight = norm.bias = Parameter<T>();
  return norm;
}

MultiHeadAttentionOptions of_attention(const TransformerBlockOptions& options) {
  return {.num_kv_heads = options.num_kv_heads,
          .rotary_base = options.rotary_base,
          .bias = options.bias,
          .dropout = options.attention_dropout,
          .generator = options.generator};
}

MultiHeadAttentionOptions of_cross_attention(const TransformerBlockOptions& options, std::size_t memory_width) {
  MultiHeadAttentionOptions of_cross = of_attention(options);
  of_cross.key_dim = of_cross.value_dim = memory_width;
  of_cross.rotary_base.reset();
  return of_cross;
}

FeedForwardOptions of_feed_forward(const TransformerBlockOptions& options) {
  return {.activation = options.activation, .bias = options.bias, .generator = options.generator};
}

// One part of a block: x + dropout(f(x)), with a norm before f, after the sum, or nowhere.
template <class Block, class T, class F>
Tensor<T> residual(const Block& block, const Tensor<T>& x, const LayerNorm<T>& norm, const F& f) {
  const Tensor<T> y = x + block.dropout(f(block.norm == NormPlacement::first ? norm(x) : x));
  return block.norm == NormPlacement::last ? norm(y) : y;
}

}  // namespace

template <class T>
FeedForward<T>::FeedForward(std::size_t width, std::size_t hidden, const FeedForwardOptions& options)
    : fc1(width, hidden, {.bias = options.bias, .generator = options.generator}),
      fc2(hidden, width, {.bias = options.bias, .generator = options.generator}),
      activation(options.activation) {
  if (activation == Activation::swiglu) gate.emplace(width, hidden, LinearOptions{options.bias, options.generator});
}

template <class T> Tensor<T> FeedForward<T>::operator()(const Tensor<T>& x) const {
  const LayerScope scope(*this);
  const Tensor<T> h = fc1(x);
  return scope.output(fc2(gate ? activate((*gate)(x), activation) * h : activate(h, activation)));
}

template <class T>
TransformerBlock<T>::TransformerBlock(std::size_t width, std::size_t num_heads, const TransformerBlockOptions& options)
    : dropout(options.dropout),
      norm1(make_norm<T>(checked_width("TransformerBlock", width, options), options)),
      attention(width, num_heads, of_attention(options)),
      norm2(make_norm<T>(width, options)),
      feed_forward(width, width_inside(width, options), of_feed_forward(options)),
      norm(options.norm) {}

template <class T>
template <class Attend>
Tensor<T> TransformerBlock<T>::apply(const Tensor<T>& x, Attend attend) const {
  const LayerScope scope(*this);
  const Tensor<T> attended = residual(*this, x, norm1, attend);
  return scope.output(residual(*this, attended, norm2, feed_forward));
}

template <class T> Tensor<T> TransformerBlock<T>::operator()(const Tensor<T>& x, const AttentionMask& mask) const {
  return apply(x, [&](const Tensor<T>& h) { return attention(h, mask); });
}

template <class T>
Tensor<T> TransformerBlock<T>::operator()(const Tensor<T>& x, KeyValueCache<T>& cache,
                                          const AttentionMask& mask) const {
  return apply(x, [&](const Tensor<T>& h) { return attention(h, cache, mask); });
}

template <class T>
std::pair<Tensor<T>, Tensor<T>> TransformerBlock<T>::with_weights(const Tensor<T>& x, const AttentionMask& mask) const {
  Tensor<T> weights;
  Tensor<T> y = apply(x, [&](const Tensor<T>& h) {
    auto [attended, weights_of_h] = attention.with_weights(h, h, h, mask);
    weights = std::move(weights_of_h);
    return std::move(attended);
  });
  return {std::move(y), std::move(weights)};
}

template <class T>
TransformerDecoderBlock<T>::TransformerDecoderBlock(std::size_t width, std::size_t num_heads,
                                                    const TransformerBlockOptions& options, std::size_t memory_width)
    : dropout(options.dropout),
      norm1(make_norm<T>(checked_width(kDecoder, width, options), options)),
      attention(width, num_heads, of_attention(options)),
      norm2(make_norm<T>(width, options)),
      cross_attention(width, num_heads, of_cross_attention(options, memory_width)),
      norm3(make_norm<T>(width, options)),
      feed_forward(width, width_inside(width, options), of_feed_forward(options)),
      norm(options.norm) {}

template <class T>
template <class Attend, class Cross>
Tensor<T> TransformerDecoderBlock<T>::apply(const Tensor<T>& x, Attend attend, Cross cross) const {
  const LayerScope scope(*this);
  const Tensor<T> attended = residual(*this, x, norm1, attend);
  return scope.output(residual(*this, residual(*this, attended, norm2, cross), norm3, feed_forward));
}

template <class T>
Tensor<T> TransformerDecoderBlock<T>::operator()(const Tensor<T>& x, const Tensor<T>& memory, const AttentionMask& mask,
                                                 const AttentionMask& memory_mask) const {
  return apply(
      x, [&](const Tensor<T>& h) { return attention(h, mask); },
      [&](const Tensor<T>& h) { return cross_attention(h, memory, memory, memory_mask); });
}

template <class T>
Tensor<T> TransformerDecoderBlock<T>::operator()(const Tensor<T>& x, DecoderCache<T>& cache,
                                                 const AttentionMask& memory_mask) const {
  // Checked before the self-attention changes the cache.
  const Shape &of_x = x.shape(), &of_keys = cache.keys_.shape();
  detail::require(of_x.size() == 3 && of_x[0] == of_keys[0], kDecoder, "expected x (", of_keys[0],
                  ", T, width), as many sequences as the cache's memory has, got ", of_x);
  const Shape& of_values = cache.values_.shape();
  detail::require(of_keys[2] == cross_attention.k_proj.weight.shape()[0] &&
                      of_values[2] == cross_attention.v_proj.weight.shape()[0],
                  kDecoder, "expected a cache made by this block, got one with keys ", of_keys, " and values ",
                  of_values, "; construct a DecoderCache with this block");
  (void)detail::MaskRows<T>(kDecoder, memory_mask, of_x[0], cross_attention.num_heads, of_x[1], of_keys[1]);
  return apply(
      x, [&](const Tensor<T>& h) { return attention(h, cache.tokens_); },
      [&](const Tensor<T>& h) { return cross_attention.attend(h, cache.keys_, cache.values_, memory_mask); });
}

template <class T>
std::pair<Tensor<T>, Tensor<T>> TransformerDecoderBlock<T>::with_weights(const Tensor<T>& x, const Tensor<T>& memory,
                                                                         const AttentionMask& mask,
                                                                         const AttentionMask& memory_mask) const {
  Tensor<T> weights;
  Tensor<T> y = apply(
      x, [&](const Tensor<T>& h) { return attention(h, mask); },
      [&](const Tensor<T>& h) {
        auto [attended, weights_of_h] = cross_attention.with_weights(h, memory, memory, memory_mask);
        weights = std::move(weights_of_h);
        return std::move(attended);
      });
  return {std::move(y), std::move(weights)};
}

template <class T>
DecoderCache<T>::DecoderCache(const TransformerDecoderBlock<T>& block, const Tensor<T>& memory)
    : keys_(block.cross_attention.k_proj(memory)), values_(block.cross_attention.v_proj(memory)) {
  detail::require_usage(!keys_.requires_grad() && !values_.requires_grad(), "DecoderCache",
                        "expected constants, because the cached keys receive no gradients, got recorded tensors; "
                        "use tg::NoGrad");
  detail::require(memory.dimension() == 3, "DecoderCache", "expected a memory (B, S, memory_width), got ",
                  memory.shape());
}

template <class T> void DecoderCache<T>::select(const IntArray& sequences) {
  detail::require(sequences.dimension() == 1, "DecoderCache", "expected rows (R), got ", sequences.shape());
  if (sequences == arange(static_cast<std::int64_t>(keys_.shape()[0]))) return;
  Tensor<T> keys = rows(keys_.value(), sequences), values = rows(values_.value(), sequences);
  tokens_.select(sequences);
  keys_ = std::move(keys);
  values_ = std::move(values);
}

LoadOptions from_torch_transformer() {
  const auto rename = [](std::string name) {
    const std::pair<std::string_view, std::string_view> names[] = {
        {"q_proj_weight", "q_proj.weight"}, {"k_proj_weight", "k_proj.weight"},      {"v_proj_weight", "v_proj.weight"},
        {"self_attn.", "attention."},       {"multihead_attn.", "cross_attention."}, {"linear1.", "feed_forward.fc1."},
        {"linear2.", "feed_forward.fc2."}};
    for (const auto& [from, to] : names)
      if (const auto place = name.find(from); place != name.npos && (place == 0 || name[place - 1] == '.'))
        name.replace(place, from.size(), to);
    return name;
  };
  return {.rename = rename,
          .split = {{"in_proj_weight", {"q_proj.weight", "k_proj.weight", "v_proj.weight"}},
                    {"in_proj_bias", {"q_proj.bias", "k_proj.bias", "v_proj.bias"}}}};
}

template struct FeedForward<float>;
template struct FeedForward<double>;
template struct TransformerBlock<float>;
template struct TransformerBlock<double>;
template struct TransformerDecoderBlock<float>;
template struct TransformerDecoderBlock<double>;
template class DecoderCache<float>;
template class DecoderCache<double>;

}  // namespace tapegrad
