/// Gradients of a bounded norm.
#pragma once

#include "../engine/tape/parameter_handle.hpp"

namespace tapegrad {

/// Scales the gradients so that their norm is at most `max_norm` (Pascanu et al. 2013, arXiv:1211.5063), as PyTorch's
/// clip_grad_norm_ does. With the norm |g| of all gradients together, the root of the sum of all their squares,
///
///     g *= min(1, max_norm / (|g| + 1e-6))
///
/// Returns |g|, which is computed in double and is the same on any number of threads. Parameters without a gradient do
/// not count. Gradients whose norm is infinite or NaN stay as they are: look at what is returned, and leave the step
/// out.
///
///     loss.backward();
///     tg::clip_grad_norm(tg::parameters(model), 1.0);
///     optimizer.step();
///
/// Throws std::invalid_argument, before any gradient changes, when max_norm is negative or NaN, and for a parameter
/// that is there twice; an infinite max_norm only measures.
template <class T> double clip_grad_norm(const Parameters<T>& parameters, double max_norm);

}  // namespace tapegrad
