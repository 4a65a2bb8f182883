/// Batches of texts of different lengths.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include "vocabulary.hpp"

namespace examples {

/// Sequences of different lengths as the rows of one array.
struct Padded {
  tapegrad::IntArray ids;    ///< (B, T), filled up with Vocabulary::padding
  tapegrad::BoolArray keep;  ///< (B, T), true for real tokens
  std::size_t tokens;        ///< how many of them are real
};

/// The chosen sequences, as long as the longest of them.
Padded pad(const std::vector<Ids>& sequences, std::span<const std::size_t> chosen);

/// Hands out the numbers 0, ..., n - 1 of n sequences in random order, a batch at a time, each number once before any
/// comes again. Batches are of similar lengths, so that little of them is padding.
class Batches {
 public:
  /// Throws std::invalid_argument when there is no sequence.
  Batches(const std::vector<Ids>& sequences, std::size_t batch_size);

  /// The next batch; it lasts until the next call.
  std::span<const std::size_t> next();

 private:
  void shuffle();

  std::vector<std::size_t> lengths_, order_;
  std::size_t batch_size_;
  std::vector<std::size_t> starts_;  // of the batches in order_ that are still to come
};

}  // namespace examples
