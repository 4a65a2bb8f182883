/// The language model: predicts the next token.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "model_options.hpp"

/// A causal language model: each position predicts its next token. With blocks it is a GPT (Radford et al. 2019) or,
/// depending on the options, similar to Llama (Touvron et al. 2023, arXiv:2302.13971).
template <class T = float> struct LanguageModel {
  tapegrad::Embedding<T> embedding;
  std::optional<tapegrad::Embedding<T>> positions;
  tapegrad::Dropout dropout;
  std::optional<tapegrad::MultiHeadAttention<T>> attention;  // the tutorial's model, without blocks
  std::vector<tapegrad::TransformerBlock<T>> blocks;
  std::optional<tapegrad::LayerNorm<T>> norm;
  std::optional<tapegrad::Linear<T>> head;  // unless tied
  TAPEGRAD_FIELDS(embedding, positions, dropout, attention, blocks, norm, head)

  using Tensor = tapegrad::Tensor<T>;
  using Caches = std::vector<tapegrad::KeyValueCache<T>>;  // one per attention layer

  LanguageModel(std::size_t vocabulary, const ModelOptions& options)
      : embedding(vocabulary, options.width), dropout(options.dropout) {
    for (std::size_t i = 0; i < options.layers; ++i)
      blocks.emplace_back(options.width, options.heads, options_of_block(options));
    if (blocks.empty()) attention.emplace(options.width, options.heads);
    if (!blocks.empty() && options.norm != Norm::none) norm.emplace(make_norm(options));
    if (!options.tie) head.emplace(options.width, vocabulary, tapegrad::LinearOptions{.bias = options.head_bias});
    if (options.positions == Positions::learned) positions.emplace(options.context, options.width);
    if (blocks.empty()) return;
    if (options.init == Initialization::gpt2)
      tapegrad::initialize_gpt2(*this);
    else
      tapegrad::initialize_lecun(*this);
  }

  /// ids: (B, T) -> logits of the next ids (B, T, vocabulary). With `recompute`, the tape saves only the blocks' inputs
  /// and recomputes other activations in the backward pass.
  Tensor operator()(const tapegrad::IntArray& ids, bool recompute = false) const {
    const auto causal = tapegrad::AttentionMask::causal();
    return predict(vectors(ids), [&](const auto& layer, std::size_t, const Tensor& x) {
      auto apply = [&layer, causal](const Tensor& h) { return layer(h, causal); };
      return recompute ? tapegrad::recompute(std::move(apply), x) : apply(x);
    });
  }

  /// The logits of ids that continue the caches. Appends to the caches; empty ones start a text.
  Tensor operator()(const tapegrad::IntArray& ids, Caches& caches) const {
    caches.resize(blocks.empty() ? 1 : blocks.size());
    return predict(vectors(ids, caches.front().size()),
                   [&](const auto& layer, std::size_t i, const Tensor& x) { return layer(x, caches[i]); });
  }

  /// The logits and every layer's attention weights. -> (B, T, vocabulary), (B, heads, T, T) per layer
  std::pair<Tensor, std::vector<Tensor>> with_weights(const tapegrad::IntArray& ids) const {
    std::vector<Tensor> weights;
    const Tensor logits = predict(vectors(ids), [&](const auto& layer, std::size_t, const Tensor& x) {
      const auto [y, weights_of_layer] = attend(layer, x);
      weights.push_back(weights_of_layer);
      return y;
    });
    return {logits, weights};
  }

 private:
  static tapegrad::TransformerBlockOptions options_of_block(const ModelOptions& options) {
    using tapegrad::NormPlacement, tapegrad::Normalization;
    tapegrad::TransformerBlockOptions of_block{
        .feed_forward_width = width_of_feed_forward(options),
        .dropout = options.dropout,
        .activation = options.activation,
        .bias = options.bias,
        .norm = options.norm == Norm::none ? NormPlacement::none : NormPlacement::first,
        .normalization = options.norm == Norm::rms ? Normalization::rms : Normalization::layer,
        .norm_eps = options.norm_eps,
        .num_kv_heads = options.kv_heads};
    if (options.positions == Positions::rotary) of_block.rotary_base = options.rotary_base;
    return of_block;
  }

  static tapegrad::LayerNorm<T> make_norm(const ModelOptions& options) {
    if (options.norm == Norm::rms) return tapegrad::RMSNorm<T>(options.width, {.eps = options.norm_eps});
    return tapegrad::LayerNorm<T>(options.width, {.eps = options.norm_eps, .bias = options.bias});
  }

  /// The vectors of ids starting at position `first`. (B, T) -> (B, T, D)
  Tensor vectors(const tapegrad::IntArray& ids, std::size_t first = 0) const {
    Tensor x = embedding(ids);
    if (positions) {
      const auto begin = static_cast<std::int64_t>(first), end = begin + static_cast<std::int64_t>(ids.shape()[1]);
      x = x + (*positions)(tapegrad::arange(begin, end));  // (T, D) broadcasts over the batch
    }
    return dropout(x);
  }

  using WithWeights = std::pair<Tensor, Tensor>;
  static WithWeights attend(const tapegrad::TransformerBlock<T>& block, const Tensor& x) {
    return block.with_weights(x, tapegrad::AttentionMask::causal());
  }
  static WithWeights attend(const tapegrad::MultiHeadAttention<T>& attention, const Tensor& x) {
    return attention.with_weights(x, x, x, tapegrad::AttentionMask::causal());
  }

  /// Runs the layers on x and returns the logits. apply(layer, index, x) runs one block or the attention.
  template <class Apply> Tensor predict(Tensor x, Apply apply) const {
    if (attention) x = apply(*attention, 0, x);
    for (std::size_t i = 0; i < blocks.size(); ++i) x = apply(blocks[i], i, x);
    if (norm) x = (*norm)(x);
    return head ? (*head)(x) : tapegrad::linear(x, embedding.weight);
  }
};
