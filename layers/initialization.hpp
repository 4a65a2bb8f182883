/// First weights as GPT-2 has them (Radford et al. 2019).
#pragma once

#include <cmath>
#include <cstddef>
#include <type_traits>

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

/// All linear layers and embeddings in the model normal with a standard deviation of 0.02, and the layers of each
/// TransformerBlock whose output is added to the residual stream, out_proj and fc2, 1 / sqrt(2 n) of that with n
/// blocks: the sum of 2 n such outputs then varies as one does.
template <class M> void initialize_gpt2(M& model, Generator& generator = default_generator()) {
  using T = detail::ScalarOf<M>;
  constexpr double standard_deviation = 0.02;
  std::size_t blocks = 0;
  detail::walk(model, [&]<class F>(const detail::Path&, F& field) {
    if constexpr (std::is_same_v<F, Linear<T>> || std::is_same_v<F, Embedding<T>>)
      initialize_normal(field, standard_deviation, generator);
    blocks += std::is_same_v<F, TransformerBlock<T>>;
  });
  detail::walk(model, [&]<class F>(const detail::Path&, F& field) {
    if constexpr (std::is_same_v<F, TransformerBlock<T>>) {
      const double shrunk = standard_deviation / std::sqrt(2 * static_cast<double>(blocks));
      initialize_normal(field.attention.out_proj, shrunk, generator);
      initialize_normal(field.feed_forward.fc2, shrunk, generator);
    }
  });
}

}  // namespace tapegrad
