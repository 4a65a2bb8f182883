/// The fully connected layer.
#pragma once

#include <cstddef>
#include <optional>

#include "../engine/array/random.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// What may be set beside the sizes.
struct LinearOptions {
  bool bias = true;                ///< whether b is added
  Generator* generator = nullptr;  ///< of the first weight and bias; null: the default one
};

/// One of the two matrices whose product is a low-rank update.
template <class T = float> struct LowRankFactor {
  Parameter<T> weight;  ///< (rank, in_features) or (out_features, rank)
  TAPEGRAD_FIELDS(weight)
};

/// x W^T + b, and where it has a low-rank update (see add_low_rank) + (alpha / rank) (x A^T) B^T. Starts with weight
/// and bias evenly from +-1 / sqrt(in_features), as in PyTorch.
template <class T = float> struct Linear {
  Parameter<T> weight;  ///< (out_features, in_features)
  Parameter<T> bias;    ///< (out_features); undefined when there is none
  std::optional<LowRankFactor<T>>
      lora_A{};  ///< (rank, in_features); of a layer with a low-rank update, as the next two
  std::optional<LowRankFactor<T>> lora_B{};  ///< (out_features, rank)
  std::optional<double> lora_alpha{};        ///< what the update is multiplied by, over the rank
  TAPEGRAD_FIELDS(weight, bias, lora_A, lora_B)
  TAPEGRAD_SETTINGS(lora_alpha)

  /// Throws std::invalid_argument for a size that is not positive.
  Linear(std::size_t in_features, std::size_t out_features, const LinearOptions& options = {});

  /// x: (..., in_features) -> (..., out_features)
  Tensor<T> operator()(const Tensor<T>& x) const;

  /// alpha / rank of the low-rank update that there is.
  T low_rank_scale() const { return static_cast<T>(*lora_alpha / static_cast<double>(lora_A->weight.shape()[0])); }
};

}  // namespace tapegrad
