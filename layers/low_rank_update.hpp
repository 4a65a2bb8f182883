/// A low-rank update of a linear layer (Hu et al. 2021, arXiv:2106.09685).
#pragma once

#include <string_view>
#include <tuple>

#include "../engine/tape/parameter.hpp"

namespace tapegrad {

/// (alpha / rank) (x A^T) B^T. The names in checkpoints are PEFT's, next to the layer's own weight.
template <class T = float> struct LowRank {
  Parameter<T> A;    ///< (rank, in_features)
  Parameter<T> B;    ///< (out_features, rank)
  double alpha = 1;  ///< scale of the update times the rank

  /// alpha / rank
  T scale() const { return static_cast<T>(alpha / static_cast<double>(A.shape()[0])); }
  /// x: (..., in_features) -> (..., out_features)
  Tensor<T> operator()(const Tensor<T>& x) const;

  /// @cond
  // Like TAPEGRAD_FIELDS and TAPEGRAD_SETTINGS, which accept no names with dots.
  using tapegrad_inline = void;
  static constexpr std::string_view tapegrad_field_names() { return "lora_A.weight, lora_B.weight"; }
  auto tapegrad_fields() { return std::tie(A, B); }
  auto tapegrad_fields() const { return std::tie(A, B); }
  auto tapegrad_listed() const { return this; }
  static constexpr std::string_view tapegrad_setting_names() { return "lora_alpha"; }
  auto tapegrad_settings() const { return std::tie(alpha); }
  /// @endcond
};

}  // namespace tapegrad
