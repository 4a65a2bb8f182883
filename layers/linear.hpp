/// The fully connected layer.
#pragma once

#include <cstddef>
#include <optional>

#include "../engine/array/random.hpp"
#include "low_rank.hpp"
#include "model/fields.hpp"
#include "weight.hpp"

namespace tapegrad {

/// Options of Linear.
struct LinearOptions {
  bool bias = true;                ///< adds b
  Generator* generator = nullptr;  ///< draws the initial weight and bias; null: the default generator
};

/// x W^T + b, plus the low-rank update if there is one (see add_low_rank). Weight and bias start uniformly distributed
/// within +-1 / sqrt(in_features), as in PyTorch.
template <class T = float> struct Linear {
  Weight<T> weight;                      ///< (out_features, in_features)
  Parameter<T> bias;                     ///< (out_features); undefined without a bias
  std::optional<LowRank<T>> low_rank{};  ///< named lora_A.weight and lora_B.weight
  TAPEGRAD_FIELDS(weight, bias, low_rank)

  /// Throws std::invalid_argument for a size of 0.
  Linear(std::size_t in_features, std::size_t out_features, const LinearOptions& options = {});

  /// x: (..., in_features) -> (..., out_features)
  Tensor<T> operator()(const Tensor<T>& x) const;
};

}  // namespace tapegrad
