/// What a language model is made of.
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

/// How the first weights of the blocks are drawn: as GPT-2's, or as wide as the layers' widths ask for.
enum class Initialization { lecun, gpt2 };
NLOHMANN_JSON_SERIALIZE_ENUM(Initialization, {{Initialization::lecun, "lecun"}, {Initialization::gpt2, "gpt2"}})

/// How the model knows where a token stands: by a vector that it learns for every position, or by angles between
/// queries and keys.
enum class Positions { none, learned, rotary };
NLOHMANN_JSON_SERIALIZE_ENUM(Positions,
                             {{Positions::none, false}, {Positions::learned, true}, {Positions::rotary, "rotary"}})

/// What is in and after the blocks.
enum class Norm { layer, none, rms };
NLOHMANN_JSON_SERIALIZE_ENUM(Norm, {{Norm::layer, true}, {Norm::none, false}, {Norm::rms, "rms"}})

struct ModelOptions {
  std::size_t layers = 0;  ///< Transformer blocks; 0: one attention alone, as in the tutorial
  std::size_t heads = 1, width = 1;
  std::size_t context = 1;  ///< the longest sequence, in tokens
  Positions positions = Positions::none;
  bool tie = false;  ///< whether the head's weights are the embedding
  Norm norm = Norm::layer;
  double norm_eps = 1e-5;  ///< what a norm adds to the mean of squares before the root
  double dropout = 0;      ///< of the vectors, and of what each block adds to them
  Initialization init = Initialization::lecun;
  tapegrad::Activation activation = tapegrad::Activation::gelu;
  std::size_t feed_forward = 0;  ///< width inside a block's feed-forward; 0: as wide as has 8 width^2 numbers
  std::size_t kv_heads = 0;      ///< of keys and values, which so many heads share; 0: as many as heads
  double rotary_base = 10000;
  bool bias = true;       ///< of the blocks and norms
  bool head_bias = true;  ///< of a head that is not tied
  bool operator==(const ModelOptions&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ModelOptions, layers, heads, width, context, positions, tie, norm,
                                                norm_eps, dropout, init, activation, feed_forward, kv_heads,
                                                rotary_base, bias, head_bias)

/// The width inside a block's feed-forward: of two layers four times the block's, of the three of SwiGLU 8 / 3 times.
inline std::size_t width_of_feed_forward(const ModelOptions& options) {
  if (options.feed_forward > 0) return options.feed_forward;
  return options.activation == tapegrad::Activation::swiglu ? (8 * options.width + 1) / 3 : 4 * options.width;
}

/// How many numbers the weights of a block have, of the least kind: the biases and norms are not counted.
inline double numbers_in_block(const ModelOptions& options) {
  const auto width = static_cast<double>(options.width);
  const double kv_width = width * static_cast<double>(options.kv_heads == 0 ? options.heads : options.kv_heads) /
                          static_cast<double>(options.heads);
  const double layers_of_feed_forward = options.activation == tapegrad::Activation::swiglu ? 3 : 2;
  return 2 * width * (width + kv_width) +
         layers_of_feed_forward * width * static_cast<double>(width_of_feed_forward(options));
}
