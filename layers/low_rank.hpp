/// Low-rank updates of linear layers, LoRA (Hu et al. 2021, arXiv:2106.09685): a large model is trained by few numbers.
///
///     for (const auto& parameter : tg::parameters(model)) parameter->set_requires_grad(false);
///     tg::add_low_rank(model, 8, 16);      // trains y = x W^T + b + 16/8 (x A^T) B^T in A and B alone
///     ...
///     tg::merge_low_rank(model);           // as fast as before
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "../engine/array/random.hpp"
#include "linear.hpp"
#include "model/fields.hpp"

namespace tapegrad {

namespace detail {

/// All layers are checked before the first changes: with `change` false nothing happens but that.
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

/// Adds an update of that rank to every Linear in the model, or to a model that is a Linear itself, (alpha / rank)
/// (x A^T) B^T, with A evenly from +-1 / sqrt(in_features) and B of zeros, so that the model computes at first what it
/// did. Their names are PEFT's, `q_proj.lora_A.weight` and `q_proj.lora_B.weight`. The other parameters stay as they
/// are: who freezes them calls set_requires_grad(false) before. Weights may be held in bfloat16. Throws
/// std::invalid_argument for a rank of 0 or an alpha that is not finite, std::logic_error for a layer that has an
/// update, before any layer changes.
template <class M>
void add_low_rank(M& model, std::size_t rank, double alpha, Generator& generator = default_generator()) {
  detail::for_each_linear(model, [&](auto& layer, bool change) {
    detail::add_low_rank<detail::ScalarOf<M>>(layer, rank, alpha, generator, change);
  });
}

/// Adds each update to its layer's weight, W + (alpha / rank) B A, and drops it. Layers without one stay as they are.
/// Throws std::logic_error where the weight or update of a layer that has one is held in bfloat16, before any changes.
template <class M> void merge_low_rank(M& model) {
  detail::for_each_linear(model,
                          [](auto& layer, bool change) { detail::merge_low_rank<detail::ScalarOf<M>>(layer, change); });
}

}  // namespace tapegrad
