/// Options of the language model's architecture.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>

namespace tapegrad {
NLOHMANN_JSON_SERIALIZE_ENUM(Activation, {{Activation::gelu, "gelu"},
                                          {Activation::gelu_tanh, "gelu_tanh"},
                                          {Activation::relu, "relu"},
                                          {Activation::silu, "silu"},
                                          {Activation::swiglu, "swiglu"}})
}

inline constexpr std::size_t longest_context = 1'000'000;

/// Initialization of the blocks: LeCun, scaled by the layers' widths, or GPT-2's.
enum class Initialization { lecun, gpt2 };
NLOHMANN_JSON_SERIALIZE_ENUM(Initialization, {{Initialization::lecun, "lecun"}, {Initialization::gpt2, "gpt2"}})

/// Encoding of positions: none, a learned vector per position, or rotary: rotated queries and keys.
enum class Positions { none, learned, rotary };
NLOHMANN_JSON_SERIALIZE_ENUM(Positions,
                             {{Positions::none, false}, {Positions::learned, true}, {Positions::rotary, "rotary"}})

/// The normalization in and after the blocks.
enum class Norm { layer, none, rms };
NLOHMANN_JSON_SERIALIZE_ENUM(Norm, {{Norm::layer, true}, {Norm::none, false}, {Norm::rms, "rms"}})

struct ModelOptions {
  std::size_t layers = 0;  ///< transformer blocks; 0: one attention layer, as in the tutorial
  std::size_t heads = 1, width = 1;
  std::size_t context = 1;  ///< maximum sequence length in tokens
  Positions positions = Positions::none;
  bool tie = false;  ///< true if the head shares the embedding's weights
  Norm norm = Norm::layer;
  double norm_eps = 1e-5;  ///< added to the variance or mean square before the root
  double dropout = 0;      ///< of the embeddings and the residual branches
  Initialization init = Initialization::lecun;
  tapegrad::Activation activation = tapegrad::Activation::gelu;
  std::size_t feed_forward = 0;  ///< width inside a block's feed-forward; 0: with 8 width^2 weights
  std::size_t kv_heads = 0;      ///< heads of keys and values in grouped-query attention; 0: as many as heads
  double rotary_base = 10000;
  bool bias = true;       ///< of the blocks and norms
  bool head_bias = true;  ///< of an untied head
  bool operator==(const ModelOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ModelOptions, layers, heads, width, context, positions, tie, norm,
                                                norm_eps, dropout, init, activation, feed_forward, kv_heads,
                                                rotary_base, bias, head_bias)

/// The width inside a block's feed-forward. By default 4 width with two layers, or 8 / 3 width with SwiGLU's three.
inline std::size_t width_of_feed_forward(const ModelOptions& options) {
  if (options.feed_forward > 0) return options.feed_forward;
  return options.activation == tapegrad::Activation::swiglu ? (8 * options.width + 1) / 3 : 4 * options.width;
}

/// The minimum number of parameters in a block: its weights without biases and norms.
inline double numbers_in_block(const ModelOptions& options) {
  const auto width = static_cast<double>(options.width);
  const double kv_width = width * static_cast<double>(options.kv_heads == 0 ? options.heads : options.kv_heads) /
                          static_cast<double>(options.heads);
  const double layers_of_feed_forward = options.activation == tapegrad::Activation::swiglu ? 3 : 2;
  return 2 * width * (width + kv_width) +
         layers_of_feed_forward * width * static_cast<double>(width_of_feed_forward(options));
}
