/// Layer normalization (Ba et al. 2016, arXiv:1607.06450), and by the root of the mean square alone (Zhang and Sennrich
/// 2019, arXiv:1910.07467).
#pragma once

#include "../engine/array/shape.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// What may be set beside the width.
struct LayerNormOptions {
  double eps = 1e-5;   ///< added to the variance
  bool bias = true;    ///< whether one is added
  bool center = true;  ///< whether the mean is subtracted; without, and without a bias, it is an RMSNorm
};

/// (x - mean) / sqrt(variance + eps) * weight + bias, over the last axes; or where it does not center,
/// x / sqrt(mean(x²) + eps) * weight + bias. Starts with ones and zeros.
template <class T = float> struct LayerNorm {
  Parameter<T> weight;  ///< normalized_shape
  Parameter<T> bias;    ///< normalized_shape; undefined when there is none
  double eps;           ///< added to the variance
  bool center;          ///< whether the mean is subtracted
  TAPEGRAD_FIELDS(weight, bias)
  TAPEGRAD_SETTINGS(eps, center)

  /// normalized_shape: the extents of the last axes, or of the last one. Throws std::invalid_argument for extents that
  /// are not positive and an eps that is negative or NaN.
  explicit LayerNorm(const Extents& normalized_shape, const LayerNormOptions& options = {});

  /// x: (..., normalized_shape) -> the same
  Tensor<T> operator()(const Tensor<T>& x) const;
};

/// PyTorch's option.
struct RMSNormOptions {
  double eps = 1e-6;  ///< added to the mean of the squares
};

/// x / sqrt(mean(x²) + eps) * weight, over the last axes: a LayerNorm that does not center and has no bias, and that
/// may stand in the place of one, `block.norm1 = tg::RMSNorm<>(width)`. Starts with ones.
template <class T = float> struct RMSNorm : LayerNorm<T> {
  /// normalized_shape, and what is thrown, as of LayerNorm.
  explicit RMSNorm(const Extents& normalized_shape, const RMSNormOptions& options = {})
      : LayerNorm<T>(normalized_shape, {.eps = options.eps, .bias = false, .center = false}) {}
};

}  // namespace tapegrad
