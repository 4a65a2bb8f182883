/// Activation checkpointing (Chen et al. 2016, arXiv:1604.06174): memory for time.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "tensor.hpp"

namespace tapegrad {

namespace detail {
template <class T> Tensor<T> recompute(std::function<Tensor<T>(const Tensor<T>&)> f, const Tensor<T>& x);
}  // namespace detail

/// f(x), of which the tape keeps x alone: the sweep calls f again, for what its operations save, and goes on through
/// them. Values and gradients are the same bits as those of f(x); only where TapeOptions::keep_values is set may their
/// last digits differ, as it says. A chain of n equal layers then holds n inputs and what one layer saves, instead of
/// what all of them save, for one more forward pass.
///
///     for (const auto& block : model.blocks)
///       x = tg::recompute([&block, mask](const auto& x) { return block(x, mask); }, x);
///
/// f is taken over, and lives until the sweep or the end of the tape; so must what it refers to. A layer of a model is
/// given as std::ref(layer): a copy of it would have parameters of its own. f takes a tensor and returns one. Of other
/// tensors that a tape has recorded it may use what it makes itself; parameters as it likes: these get their gradients,
/// and their hooks are called, as ever, at the values that f read, whatever they have been set to since. Random numbers
/// come out the same again, from any Generator. What else f reads must be as it was: frozen parameters, arrays, whether
/// layers are in training. What else it does, it does twice.
///
/// Without a tape it is f(x). Calls may nest. To its tape f is one operation, "recompute", which reports show as one;
/// in anomaly mode errors name the operations in f, at which a page cannot open. Throws std::logic_error for an x of
/// another tape, where f uses a tensor of this one beside x or watches x by hooks or retain_grad(), and in the sweep
/// where f draws more or fewer random numbers than before or makes another shape; and what f throws.
template <class F, class T>
requires std::is_invocable_r_v<Tensor<T>, F&, const Tensor<T>&> Tensor<T> recompute(F&& f, const Tensor<T>& x) {
  static_assert(!std::is_lvalue_reference_v<F>,
                "tapegrad: recompute takes over what it will call again in the sweep: a lambda, std::move(f), or "
                "std::ref(layer) for a layer of a model");
  return detail::recompute<T>(std::move(f), x);
}

}  // namespace tapegrad
