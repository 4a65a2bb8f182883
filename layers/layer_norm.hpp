/// Layer normalization (Ba et al. 2016, arXiv:1607.06450) and root mean square normalization (Zhang and Sennrich 2019,
/// arXiv:1910.07467).
#pragma once

#include "../engine/array/array.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// Options of LayerNorm.
struct LayerNormOptions {
  double eps = 1e-5;   ///< added to the variance
  bool bias = true;    ///< adds a bias
  bool center = true;  ///< subtracts the mean; without centering and bias it is an RMSNorm
};

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last axes; without centering,
/// x / sqrt(mean(x²) + eps) * weight + bias. Weights are initially 1, biases 0.
template <class T = float> struct LayerNorm {
  Parameter<T> weight;  ///< normalized_shape
  Parameter<T> bias;    ///< normalized_shape; undefined without a bias
  double eps;           ///< added to the variance
  bool center;          ///< subtracts the mean
  TAPEGRAD_FIELDS(weight, bias)
  TAPEGRAD_SETTINGS(eps, center)

  /// normalized_shape: the extents of the last axes, or of the last axis. Throws std::invalid_argument unless extents
  /// are positive and eps >= 0.
  explicit LayerNorm(const Extents& normalized_shape, const LayerNormOptions& options = {});

  /// x: (..., normalized_shape) -> the same
  Tensor<T> operator()(const Tensor<T>& x) const;
};

/// Options of RMSNorm.
struct RMSNormOptions {
  double eps = 1e-6;  ///< added to the mean of the squares
};

/// x / sqrt(mean(x²) + eps) * weight over the last axes: a LayerNorm without centering and bias, usable instead of one:
/// `block.norm1 = tg::RMSNorm<>(width)`. Weights are initially 1.
template <class T = float> struct RMSNorm : LayerNorm<T> {
  /// Takes normalized_shape and throws like LayerNorm.
  explicit RMSNorm(const Extents& normalized_shape, const RMSNormOptions& options = {})
      : LayerNorm<T>(normalized_shape, {.eps = options.eps, .bias = false, .center = false}) {}
};

}  // namespace tapegrad
