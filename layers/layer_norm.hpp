/// Layer normalization (Ba et al. 2016, arXiv:1607.06450).
#pragma once

#include "../engine/array/shape.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// What may be set beside the width.
struct LayerNormOptions {
  double eps = 1e-5;  ///< added to the variance
  bool bias = true;   ///< whether one is added
};

/// (x - mean) / sqrt(variance + eps) * weight + bias, over the last axes. Starts with ones and zeros.
template <class T = float> struct LayerNorm {
  Parameter<T> weight;  ///< normalized_shape
  Parameter<T> bias;    ///< normalized_shape; undefined when there is none
  double eps;           ///< added to the variance
  TAPEGRAD_FIELDS(weight, bias)
  TAPEGRAD_SETTINGS(eps)

  /// normalized_shape: the extents of the last axes, or of the last one. Throws std::invalid_argument for extents that
  /// are not positive and an eps that is negative or NaN.
  explicit LayerNorm(const Extents& normalized_shape, const LayerNormOptions& options = {});

  /// x: (..., normalized_shape) -> the same
  Tensor<T> operator()(const Tensor<T>& x) const;
};

}  // namespace tapegrad
