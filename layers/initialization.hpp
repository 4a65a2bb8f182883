/// Initialization schemes for whole models.
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

/// Draws normal weights and sets biases to 0. Throws std::invalid_argument unless the standard deviation is >= 0.
template <class T>
void initialize_normal(Linear<T>& layer, double standard_deviation, Generator& generator = default_generator());

/// The same for an embedding, except for the vector of padding_idx.
template <class T>
void initialize_normal(Embedding<T>& layer, double standard_deviation, Generator& generator = default_generator());

namespace detail {

/// Draws normal weights: linear layers with deviation_of(in_features), embeddings with the given deviation.
template <class M, class DeviationOf>
void initialize_layers(M& model, DeviationOf deviation_of, double of_embeddings, Generator& generator) {
  using T = ScalarOf<M>;
  walk(model, [&]<class F>(const Path&, F& field) {
    if constexpr (std::derived_from<F, Linear<T>>)
      initialize_normal(static_cast<Linear<T>&>(field), deviation_of(field.weight.shape()[1]), generator);
    if constexpr (std::derived_from<F, Embedding<T>>)
      initialize_normal(static_cast<Embedding<T>&>(field), of_embeddings, generator);
  });
}

/// The same with 0.02 for embeddings, then the residual layers out_proj and fc2 of n TransformerBlocks with
/// deviation_of_residual(n).
template <class M, class DeviationOf, class DeviationOfResidual>
void initialize_transformer(M& model, DeviationOf deviation_of, DeviationOfResidual deviation_of_residual,
                            Generator& generator) {
  using T = ScalarOf<M>;
  initialize_layers(model, deviation_of, 0.02, generator);
  std::size_t blocks = 0;
  walk(model, [&]<class F>(const Path&, F&) { blocks += std::derived_from<F, TransformerBlock<T>>; });
  walk(model, [&]<class F>(const Path&, F& field) {
    if constexpr (std::derived_from<F, TransformerBlock<T>>)
      for (Linear<T>* layer : {&field.attention.out_proj, &field.feed_forward.fc2})
        initialize_normal(*layer, deviation_of_residual(static_cast<double>(blocks)), generator);
  });
}

}  // namespace detail

/// Normal weights in all linear layers and embeddings of a model, and biases of 0. Norms and a model's own parameters
/// are unchanged. Throws std::invalid_argument unless the standard deviation is >= 0.
template <detail::ModelArgument M>
void initialize_normal(M& model, double standard_deviation, Generator& generator = default_generator()) {
  detail::initialize_layers(
      model, [=](std::size_t) { return standard_deviation; }, standard_deviation, generator);
}

/// GPT-2's initialization (Radford et al. 2019): normal weights with a standard deviation of 0.02 in all linear layers
/// and embeddings, and 0.02 / sqrt(2 n) in the residual layers out_proj and fc2 of n TransformerBlocks, so the sum of 2
/// n outputs has the variance of one.
template <detail::ModelArgument M> void initialize_gpt2(M& model, Generator& generator = default_generator()) {
  detail::initialize_transformer(
      model, [](std::size_t) { return 0.02; }, [](double n) { return 0.02 / std::sqrt(2 * n); }, generator);
}

/// An initialization for narrow models, which learn faster with it. Linear layers have a standard deviation of
/// 1 / sqrt(in_features) (LeCun et al. 1998), which preserves the variance of the input; GPT-2's 0.02 does so only for
/// thousands of features. out_proj and fc2 of TransformerBlocks start at 0, so each block is initially the identity
/// (Zhang et al. 2019). Embeddings are initialized like GPT-2's.
template <detail::ModelArgument M> void initialize_lecun(M& model, Generator& generator = default_generator()) {
  detail::initialize_transformer(
      model, [](std::size_t in_features) { return 1 / std::sqrt(static_cast<double>(in_features)); },
      [](double) { return 0.0; }, generator);
}

}  // namespace tapegrad
