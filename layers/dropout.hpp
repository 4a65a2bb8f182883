/// Dropout (Srivastava et al. 2014).
#pragma once

#include "../engine/ops/ops.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// In training, sets each element to 0 with probability p and divides the others by 1 - p. The identity in evaluation.
struct Dropout {
  double p;              ///< in [0, 1)
  bool training = true;  ///< set by train(model) and eval(model)
  TAPEGRAD_SETTINGS(p)

  /// Throws std::invalid_argument unless p is in [0, 1).
  explicit Dropout(double p = 0.5);

  /// x: any shape -> the same
  template <class T> Tensor<T> operator()(const Tensor<T>& x) const { return dropout(x, p, training); }
};

}  // namespace tapegrad
