/// Models in half the memory, for inference.
#pragma once

#include <concepts>
#include <type_traits>

#include "../engine/array/pool.hpp"
#include "embedding.hpp"
#include "linear.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// Holds the weights of all Linears and Embeddings in the model in bfloat16 alone (Parameter::hold_in_bfloat16): they
/// take half the memory, and what is computed one token at a time, which is bound by reading them, about half the time.
/// Biases, norms and low-rank updates stay as they are. The model is then for inference and for training what is left:
/// gradients flow through these weights, not to them; parameters() and named_parameters() leave them out, and
/// count_parameters() counts them. A weight that is used in two places, such as tg::linear(x, embedding.weight), is
/// held once. save() refuses such a model with std::logic_error: save it before; load() gives what it loads the model's
/// own numbers again.
template <class M> void hold_in_bfloat16(M& model) {
  using T = detail::ScalarOf<M>;
  detail::walk(model, [](const detail::Path&, auto& field) {
    using F = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::derived_from<F, Linear<T>> || std::derived_from<F, Embedding<T>>)
      field.weight.hold_in_bfloat16();
  });
  detail::pool_release_idle();
}

}  // namespace tapegrad
