/// The norm of gradients, and clipping by it.
#pragma once

#include "../engine/tape/parameter_handle.hpp"

namespace tapegrad {

/// The norm of all gradients together, the root of the sum of all their squares, computed in double and independent of
/// the number of threads. Skips parameters without a gradient. Throws std::invalid_argument for a duplicate parameter.
template <class T> double grad_norm(const Parameters<T>& parameters);

/// Scales the gradients to a norm of at most `max_norm` (Pascanu et al. 2013, arXiv:1211.5063), like PyTorch's
/// clip_grad_norm_. With |g| = grad_norm(parameters),
///
///     g *= min(1, max_norm / (|g| + 1e-6))
///
/// Returns |g|. If it is infinite or NaN the gradients are unchanged: check the result and skip the step.
///
///     loss.backward();
///     tg::clip_grad_norm(tg::parameters(model), 1.0);
///     optimizer.step();
///
/// Before any gradient changes, throws std::invalid_argument if max_norm is negative or NaN, and for a duplicate
/// parameter.
template <class T> double clip_grad_norm(const Parameters<T>& parameters, double max_norm);

}  // namespace tapegrad
