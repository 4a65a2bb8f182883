#include "transformer.hpp"

#include <stdexcept>

#include "../engine/ops/ops.hpp"
#include "internal/sizes.hpp"
#include "layer_scope.hpp"

namespace tapegrad {
namespace {

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
std::size_t checked_width(std::size_t width, const TransformerBlockOptions& options) {
  detail::require_size("TransformerBlock", "width", width);
  detail::require_size("TransformerBlock", "feed_forward_width", width_inside(width, options));
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
      norm1(make_norm<T>(checked_width(width, options), options)),
      attention(width, num_heads,
                {.num_kv_heads = options.num_kv_heads,
                 .rotary_base = options.rotary_base,
                 .bias = options.bias,
                 .dropout = options.attention_dropout,
                 .generator = options.generator}),
      norm2(make_norm<T>(width, options)),
      feed_forward(width, width_inside(width, options),
                   {.activation = options.activation, .bias = options.bias, .generator = options.generator}),
      norm(options.norm) {}

template <class T>
template <class Attend>
Tensor<T> TransformerBlock<T>::apply(const Tensor<T>& x, Attend attend) const {
  const LayerScope scope(*this);
  const auto add = [&](const Tensor<T>& before, const LayerNorm<T>& layer_norm, const auto& f) {
    switch (norm) {
      case NormPlacement::first:
        return before + dropout(f(layer_norm(before)));
      case NormPlacement::last:
        return layer_norm(before + dropout(f(before)));
      case NormPlacement::none:
        break;
    }
    return before + dropout(f(before));
  };
  return scope.output(add(add(x, norm1, attend), norm2, feed_forward));
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
  const Tensor<T> y = apply(x, [&](const Tensor<T>& h) {
    auto [attended, found] = attention.with_weights(h, h, h, mask);
    weights = std::move(found);
    return attended;
  });
  return {y, weights};
}

template struct FeedForward<float>;
template struct FeedForward<double>;
template struct TransformerBlock<float>;
template struct TransformerBlock<double>;

}  // namespace tapegrad
