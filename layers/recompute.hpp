/// Activation checkpointing (Chen et al. 2016, arXiv:1604.06174): memory for time.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "../engine/tape/tensor.hpp"

namespace tapegrad {

namespace detail {
template <class T> Tensor<T> recompute(std::function<Tensor<T>(const Tensor<T>&)> f, const Tensor<T>& x);
}  // namespace detail

/// Computes f(x) and saves only x on the tape. The backward pass calls f again for the values its operations save, and
/// propagates through them. A chain of n equal layers then stores n inputs and one layer's values instead of n layers'
/// values, for one more forward pass. Values and gradients have the same bits as without recompute; with
/// TapeOptions::keep_values their last digits may differ.
///
///     for (const auto& block : model.blocks)
///       x = tg::recompute([&block, mask](const auto& x) { return block(x, mask); }, x);
///
/// f is stored until the backward pass or the end of the tape, and its captures must stay valid until then. Pass a
/// layer of a model as std::ref(layer), since a copy would have its own parameters. f takes one tensor and returns one.
/// Besides x it may use parameters and tensors it computes itself, but no other recorded tensor. Parameters get their
/// gradients at the values f read, even if they were set since, and their hooks are called. Random numbers repeat, from
/// any Generator. Everything else that f reads must not change in between: frozen parameters, parameters read through
/// value(), detach() or NoGrad, captured arrays, the training mode of layers. Other side effects of f happen twice.
///
/// Without a tape this is f(x). Calls may nest. Reports show one operation, "recompute"; errors in anomaly mode name
/// the operations in f. Throws std::logic_error if x belongs to another tape, or if f uses another tensor of this tape
/// or calls register_hook() or retain_grad() on x; in the backward pass, if f returns other numbers than at first,
/// reads another parameter or draws another number of random numbers. A change that leaves f's result as it was, such
/// as one multiplied by 0, goes unnoticed. Rethrows f's exceptions.
template <class F, class T>
requires std::is_invocable_r_v<Tensor<T>, F&, const Tensor<T>&> Tensor<T> recompute(F&& f, const Tensor<T>& x) {
  static_assert(!std::is_lvalue_reference_v<F>,
                "tapegrad: recompute owns the function, which it calls again in the backward pass; pass a lambda, "
                "std::move(f), or std::ref(layer) for a layer of a model");
  return detail::recompute<T>(std::move(f), x);
}

}  // namespace tapegrad
