/// The fully connected layer.
#pragma once

#include "../engine/array/random.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// What may be set beside the sizes.
struct LinearOptions {
  bool bias = true;                ///< whether b is added
  Generator* generator = nullptr;  ///< of the first weight and bias; null: the default one
};

/// x W^T + b. Starts with weight and bias evenly from +-1 / sqrt(in_features), as in PyTorch.
template <class T = float> struct Linear {
  Parameter<T> weight;  ///< (out_features, in_features)
  Parameter<T> bias;    ///< (out_features); undefined when there is none
  TAPEGRAD_FIELDS(weight, bias)

  /// Throws std::invalid_argument for a size that is not positive.
  Linear(std::size_t in_features, std::size_t out_features, const LinearOptions& options = {});

  /// x: (..., in_features) -> (..., out_features)
  Tensor<T> operator()(const Tensor<T>& x) const;
};

}  // namespace tapegrad
