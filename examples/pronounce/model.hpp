/// An encoder-decoder Transformer (Vaswani et al. 2017, arXiv:1706.03762), with norms first, learned positions, and
/// rotary ones in self-attention.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace pronounce {

struct ModelOptions {
  std::size_t layers = 3, heads = 4, width = 128;  ///< layers: of the encoder and of the decoder
  double dropout = 0;
  bool operator==(const ModelOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ModelOptions, layers, heads, width, dropout)

/// The sizes that follow from the data: numbers of ids, and of positions with begin and end marks.
struct DataSizes {
  std::size_t source_ids, target_ids, source_length, target_length;
};

/// Predicts the target's next id from the source and the target's ids so far. The encoder turns the source into a
/// memory, one vector for each position; the decoder attends to it.
template <class T = float> struct EncoderDecoder {
  tapegrad::Embedding<T> source, source_positions, target, target_positions;
  tapegrad::Dropout dropout;
  std::vector<tapegrad::TransformerBlock<T>> encoder;
  tapegrad::LayerNorm<T> encoder_norm;
  std::vector<tapegrad::TransformerDecoderBlock<T>> decoder;
  tapegrad::LayerNorm<T> decoder_norm;
  tapegrad::Linear<T> head;
  TAPEGRAD_FIELDS(source, source_positions, target, target_positions, dropout, encoder, encoder_norm, decoder,
                  decoder_norm, head)

  using Tensor = tapegrad::Tensor<T>;
  using Mask = tapegrad::AttentionMask;
  using Caches = std::vector<tapegrad::DecoderCache<T>>;  // one per layer of the decoder

  EncoderDecoder(const DataSizes& sizes, const ModelOptions& options)
      : source(sizes.source_ids, options.width),
        source_positions(sizes.source_length, options.width),
        target(sizes.target_ids, options.width),
        target_positions(sizes.target_length, options.width),
        dropout(options.dropout),
        encoder_norm(options.width),
        decoder_norm(options.width),
        head(options.width, sizes.target_ids) {
    const tapegrad::TransformerBlockOptions of_block{.dropout = options.dropout, .rotary_base = 10'000};
    for (std::size_t i = 0; i < options.layers; ++i) {
      encoder.emplace_back(options.width, options.heads, of_block);
      decoder.emplace_back(options.width, options.heads, of_block);
    }
    tapegrad::initialize_lecun(*this);
  }

  /// The memory. ids: (B, S), keep: (B, S), true for real ids -> (B, S, width)
  Tensor encode(const tapegrad::IntArray& ids, const tapegrad::BoolArray& keep) const {
    Tensor x = vectors(source, source_positions, ids, 0);
    for (const auto& block : encoder) x = block(x, Mask::key_padding(keep));
    return encoder_norm(x);
  }

  /// The logits of the ids after each prefix of `before`. ids, keep: (B, S), before: (B, T) -> (B, T, target ids)
  Tensor operator()(const tapegrad::IntArray& ids, const tapegrad::BoolArray& keep,
                    const tapegrad::IntArray& before) const {
    const Tensor memory = encode(ids, keep);
    return decode(before, 0, [&](const auto& block, std::size_t, const Tensor& x) {
      return block(x, memory, Mask::causal(), Mask::key_padding(keep));
    });
  }

  /// The logits of ids that continue the caches. keep: (B, S), of the memory
  Tensor operator()(const tapegrad::IntArray& before, Caches& caches, const tapegrad::BoolArray& keep) const {
    return decode(before, caches.front().size(), [&](const auto& block, std::size_t i, const Tensor& x) {
      return block(x, caches[i], Mask::key_padding(keep));
    });
  }

  Caches caches(const Tensor& memory) const {
    Caches all;
    for (const auto& block : decoder) all.emplace_back(block, memory);
    return all;
  }

  /// The logits, and each layer's weights of the attention to the memory.
  /// -> (B, T, target ids), (B, heads, T, S) per layer
  std::pair<Tensor, std::vector<Tensor>> with_weights(const tapegrad::IntArray& ids, const tapegrad::BoolArray& keep,
                                                      const tapegrad::IntArray& before) const {
    const Tensor memory = encode(ids, keep);
    std::vector<Tensor> weights;
    const Tensor logits = decode(before, 0, [&](const auto& block, std::size_t, const Tensor& x) {
      const auto [y, of_layer] = block.with_weights(x, memory, Mask::causal(), Mask::key_padding(keep));
      weights.push_back(of_layer);
      return y;
    });
    return {logits, weights};
  }

 private:
  Tensor vectors(const tapegrad::Embedding<T>& table, const tapegrad::Embedding<T>& positions,
                 const tapegrad::IntArray& ids, std::size_t first) const {
    const auto begin = static_cast<std::int64_t>(first);
    return dropout(table(ids) + positions(tapegrad::arange(begin, begin + static_cast<std::int64_t>(ids.shape()[1]))));
  }

  template <class Apply> Tensor decode(const tapegrad::IntArray& before, std::size_t first, Apply apply) const {
    Tensor x = vectors(target, target_positions, before, first);
    for (std::size_t i = 0; i < decoder.size(); ++i) x = apply(decoder[i], i, x);
    return head(decoder_norm(x));
  }
};

}  // namespace pronounce
