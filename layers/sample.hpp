/// Sampling the next token.
#pragma once

#include <cstddef>

#include "../engine/array/array.hpp"
#include "../engine/array/random.hpp"

namespace tapegrad {

/// Options of sample, applied in order: temperature, top_k, top_p.
struct SampleOptions {
  double temperature = 1;          ///< divides the logits; 0: always the likeliest, the first of equals
  std::size_t top_k = 0;           ///< keeps the k likeliest; 0: all
  double top_p = 1;                ///< keeps the smallest set of likeliest ids with this total probability, in (0, 1]
  Generator* generator = nullptr;  ///< null: the default generator
};

/// Draws an id from each row, with the probabilities softmax(logits / temperature). logits: (..., vocabulary) -> (...).
/// Throws std::invalid_argument for options out of range, an empty vocabulary, and a row with NaN or an infinite
/// maximum.
template <class T> IntArray sample(const Array<T>& logits, const SampleOptions& options = {});

}  // namespace tapegrad
