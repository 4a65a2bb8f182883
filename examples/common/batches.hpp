/// Batches of texts of different lengths.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "vocabulary.hpp"

namespace examples {

/// Sequences of different lengths as the rows of one array.
struct Padded {
  tapegrad::IntArray ids;    ///< (B, T), padded with Vocabulary::padding
  tapegrad::BoolArray keep;  ///< (B, T), true for real tokens
  std::size_t tokens;        ///< number of real tokens
};

/// Pads the chosen sequences to the longest of them. A sequence has a size() and ids as elements.
template <class Sequence = Ids>
Padded pad(const std::vector<Sequence>& sequences, std::span<const std::size_t> chosen) {
  std::size_t longest = 0;
  for (const std::size_t i : chosen) longest = std::max(longest, sequences[i].size());

  const tapegrad::Shape shape{chosen.size(), longest};
  Padded padded{tapegrad::IntArray(shape, Vocabulary::padding), tapegrad::BoolArray(shape, false), 0};
  for (std::size_t row = 0; row < chosen.size(); ++row) {
    const Sequence& sequence = sequences[chosen[row]];
    for (std::size_t t = 0; t < sequence.size(); ++t) {
      padded.ids(row, t) = sequence[t];
      padded.keep(row, t) = true;
    }
    padded.tokens += sequence.size();
  }
  return padded;
}

/// A position in an epoch, saved to resume a run with its next batch.
struct Place {
  tapegrad::Generator shuffled_by;  ///< the generator's state before it shuffled the epoch
  std::size_t batches_left = 0;
  TAPEGRAD_FIELDS(shuffled_by, batches_left)
};

/// Iterates over the indices of n sequences in random order, a batch at a time, each index once per epoch. Batches
/// group sequences of similar lengths to reduce padding.
class Batches {
 public:
  /// Throws std::invalid_argument without sequences.
  template <class Sequence = Ids>
  Batches(const std::vector<Sequence>& sequences, std::size_t batch_size)
      : Batches(lengths_of(sequences), batch_size) {}
  /// For sequences of these lengths.
  Batches(std::vector<std::size_t> lengths, std::size_t batch_size);

  /// Returns the batch at `place` and advances it. Shuffles a new epoch with the default generator. The result is valid
  /// until the next call. Throws std::out_of_range for a place in other data.
  std::span<const std::size_t> next(Place& place);

 private:
  template <class Sequence> static std::vector<std::size_t> lengths_of(const std::vector<Sequence>& sequences) {
    std::vector<std::size_t> lengths;
    for (const Sequence& sequence : sequences) lengths.push_back(sequence.size());
    return lengths;
  }
  void shuffle(tapegrad::Generator& generator);

  std::vector<std::size_t> lengths_, order_;
  std::size_t batch_size_;
  std::vector<std::size_t> starts_;  // of the batches in order_
  std::optional<tapegrad::Generator> shuffled_by_;
};

}  // namespace examples
