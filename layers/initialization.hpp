/// First weights of models, other than those that layers begin with.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>

#include "../engine/array/random.hpp"
#include "embedding.hpp"
#include "linear.hpp"
#include "model/fields.hpp"
#include "transformer.hpp"

namespace tapegrad {

/// Normally distributed weights; biases of 0. Throws std::invalid_argument for a standard deviation below 0 or of NaN.
template <class T>
void initialize_normal(Linear<T>& layer, double standard_deviation, Generator& generator = default_generator());

/// The same for the vectors of all ids but the padding_idx, which stays as it is.
template <class T>
void initialize_normal(Embedding<T>& layer, double standard_deviation, Generator& generator = default_generator());

namespace detail {

/// All linear layers in the model normal with deviation_of(in_features), all embeddings with 0.02, and in each of n
/// TransformerBlocks the layers whose output is added to the residual stream, out_proj and fc2, with
/// deviation_of_residual(n).
template <class M, class DeviationOf, class DeviationOfResidual>
void initialize_transformer(M& model, DeviationOf deviation_of, DeviationOfResidual deviation_of_residual,
                            Generator& generator) {
  using T = ScalarOf<M>;
  std::size_t blocks = 0;
  walk(model, [&]<class F>(const Path&, F& field) {
    if constexpr (std::derived_from<F, Linear<T>>)
      initialize_normal(field, deviation_of(field.weight.shape()[1]), generator);
    if constexpr (std::derived_from<F, Embedding<T>>) initialize_normal(field, 0.02, generator);
    blocks += std::derived_from<F, TransformerBlock<T>>;
  });
  walk(model, [&]<class F>(const Path&, F& field) {
    if constexpr (std::derived_from<F, TransformerBlock<T>>)
      for (Linear<T>* layer : {&field.attention.out_proj, &field.feed_forward.fc2})
        initialize_normal(*layer, deviation_of_residual(static_cast<double>(blocks)), generator);
  });
}

}  // namespace detail

/// First weights as GPT-2 has them (Radford et al. 2019). All linear layers and embeddings in the model are normal with
/// a standard deviation of 0.02, and the layers of n TransformerBlocks whose output is added to the residual stream,
/// out_proj and fc2, with 0.02 / sqrt(2 n): the sum of 2 n such outputs then varies as one does.
template <detail::ModelArgument M> void initialize_gpt2(M& model, Generator& generator = default_generator()) {
  detail::initialize_transformer(
      model, [](std::size_t) { return 0.02; }, [](double n) { return 0.02 / std::sqrt(2 * n); }, generator);
}

/// First weights with which narrow models learn faster. Linear layers have a standard deviation of 1 /
/// sqrt(in_features) (LeCun et al. 1998), so that what they compute varies as much as what they are given, where
/// GPT-2's 0.02 suits thousands of them; and TransformerBlocks have an out_proj and fc2 of 0, so that each passes on
/// what it is given before it has learned what to add (Zhang et al. 2019). Embeddings are as GPT-2's.
template <detail::ModelArgument M> void initialize_lecun(M& model, Generator& generator = default_generator()) {
  detail::initialize_transformer(
      model, [](std::size_t in_features) { return 1 / std::sqrt(static_cast<double>(in_features)); },
      [](double) { return 0.0; }, generator);
}

}  // namespace tapegrad
