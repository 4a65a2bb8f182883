#include "batches.hpp"

#include <algorithm>
#include <stdexcept>

namespace examples {

Padded pad(const std::vector<Ids>& sequences, std::span<const std::size_t> chosen) {
  std::size_t longest = 0;
  for (const std::size_t i : chosen) longest = std::max(longest, sequences[i].size());

  const tapegrad::Shape shape{chosen.size(), longest};
  Padded padded{tapegrad::IntArray(shape, Vocabulary::padding), tapegrad::BoolArray(shape, false), 0};
  for (std::size_t row = 0; row < chosen.size(); ++row) {
    const Ids& sequence = sequences[chosen[row]];
    for (std::size_t t = 0; t < sequence.size(); ++t) {
      padded.ids(row, t) = sequence[t];
      padded.keep(row, t) = true;
    }
    padded.tokens += sequence.size();
  }
  return padded;
}

Batches::Batches(const std::vector<Ids>& sequences, std::size_t batch_size) : batch_size_(batch_size) {
  if (sequences.empty()) throw std::invalid_argument("batches: expected texts to learn from, given none");
  for (const Ids& sequence : sequences) lengths_.push_back(sequence.size());
}

std::span<const std::size_t> Batches::next() {
  if (starts_.empty()) shuffle();
  const std::size_t start = starts_.back();
  starts_.pop_back();
  return {order_.begin() + static_cast<std::ptrdiff_t>(start), std::min(batch_size_, order_.size() - start)};
}

void Batches::shuffle() {
  const tapegrad::IntArray permutation = tapegrad::random_permutation(lengths_.size());
  order_.assign(permutation.begin(), permutation.end());

  // Sorting by length within stretches of many batches keeps the order random enough.
  const std::size_t stretch = 32 * batch_size_;
  for (std::size_t begin = 0; begin < order_.size(); begin += stretch) {
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(std::min(begin + stretch, order_.size()));
    std::stable_sort(first, last, [&](std::size_t a, std::size_t b) { return lengths_[a] < lengths_[b]; });
  }
  const std::size_t count = (order_.size() + batch_size_ - 1) / batch_size_;
  for (const std::int64_t batch : tapegrad::random_permutation(count))
    starts_.push_back(static_cast<std::size_t>(batch) * batch_size_);
}

}  // namespace examples
