/// Low-rank updates of linear layers, LoRA (Hu et al. 2021, arXiv:2106.09685): fine-tuning with few parameters.
///
///     for (const auto& parameter : tg::parameters(model)) parameter->set_requires_grad(false);
///     tg::add_low_rank(model, 8, 16);      // y = x W^T + b + 16/8 (x A^T) B^T; only A and B are trained
///     ...
///     tg::merge_low_rank(model);           // W += 16/8 B A: as fast as before
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "../engine/array/random.hpp"
#include "linear.hpp"
#include "model/fields.hpp"

namespace tapegrad {

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
/// Throws std::invalid_argument if the rank is 0, alpha is not finite or a weight has not two axes, and
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
