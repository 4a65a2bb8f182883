/// Low-rank updates of linear layers, LoRA (Hu et al. 2021, arXiv:2106.09685): fine-tuning with few parameters.
///
///     for (const auto& parameter : tg::parameters(model)) parameter->set_requires_grad(false);
///     tg::add_low_rank(model, 8, 16);      // y = x W^T + b + 16/8 (x A^T) B^T; only A and B are trained
///     ...
///     tg::merge_low_rank(model);           // W += 16/8 B A: as fast as before
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "../engine/array/random.hpp"
#include "../engine/tape/parameter.hpp"
#include "model/fields.hpp"

namespace tapegrad {

template <class T> struct Linear;

/// A low-rank update of a Linear, (alpha / rank) (x A^T) B^T. The names in checkpoints are PEFT's, next to the layer's
/// own weight.
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

namespace detail {

/// With `change` false, only checks the layer: all layers are checked before the first one changes.
template <class T>
void add_low_rank(Linear<T>& layer, std::size_t rank, double alpha, Generator& generator, bool change);
template <class T> void merge_low_rank(Linear<T>& layer, bool change);

template <class M, class Visit> void for_each_linear(M& model, Visit visit) {
  for (const bool change : {false, true})
    walk(model, [&](const Path&, auto& field) {
      if constexpr (std::derived_from<std::remove_cvref_t<decltype(field)>, Linear<ScalarOf<M>>>) visit(field, change);
    });
}

}  // namespace detail

/// Adds an update (alpha / rank) (x A^T) B^T to every Linear in the model. A is uniformly distributed within
/// +-1 / sqrt(in_features) and B is zero, so the outputs stay the same at first. The names are PEFT's,
/// `q_proj.lora_A.weight` and `q_proj.lora_B.weight`. Freezes nothing: call set_requires_grad(false) on the other
/// parameters before. Weights may be held in bfloat16.
/// Throws std::invalid_argument if the rank is 0, alpha is not finite or a weight does not have two axes, and
/// std::logic_error if a layer already has an update or has no weight, in each case before any layer changes.
template <detail::ModelArgument M>
void add_low_rank(M& model, std::size_t rank, double alpha, Generator& generator = default_generator()) {
  detail::for_each_linear(model, [&](auto& layer, bool change) {
    detail::add_low_rank<detail::ScalarOf<M>>(layer, rank, alpha, generator, change);
  });
}

/// Adds each update to its layer's weight, W += (alpha / rank) B A, and removes it.
/// Throws before any layer changes: std::logic_error if a weight to be updated is held in bfloat16 or a part is
/// undefined, std::invalid_argument if an update's shapes do not fit its weight.
template <detail::ModelArgument M> void merge_low_rank(M& model) {
  detail::for_each_linear(model,
                          [](auto& layer, bool change) { detail::merge_low_rank<detail::ScalarOf<M>>(layer, change); });
}

}  // namespace tapegrad
