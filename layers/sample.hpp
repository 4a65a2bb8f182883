/// Choosing the next token.
#pragma once

#include <cstddef>

#include "../engine/array/array.hpp"
#include "../engine/array/random.hpp"

namespace tapegrad {

/// How daring the choice is. First the logits are divided by the temperature, then all but the top_k are left out, then
/// of these all that the top_p can do without.
struct SampleOptions {
  double temperature = 1;          ///< 0: always the likeliest, the first of several
  std::size_t top_k = 0;           ///< how many of the likeliest to choose from; 0: all
  double top_p = 1;                ///< the smallest set of the likeliest that has this probability together, in (0, 1]
  Generator* generator = nullptr;  ///< null: the default one
};

/// Draws an id from each row, with the probabilities softmax(logits / temperature). logits: (..., vocabulary) -> (...).
/// Throws std::invalid_argument for options outside their ranges, an empty vocabulary, and a row without a largest
/// finite logit.
template <class T> IntArray sample(const Array<T>& logits, const SampleOptions& options = {});

}  // namespace tapegrad
