#include "batches.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace examples {

namespace tg = tapegrad;

Batches::Batches(std::vector<std::size_t> lengths, std::size_t batch_size)
    : lengths_(std::move(lengths)), batch_size_(batch_size) {
  if (lengths_.empty()) throw std::invalid_argument("batches: expected training texts, got none");
}

std::span<const std::size_t> Batches::next(Place& place) {
  if (place.batches_left == 0) {
    place.shuffled_by = tg::default_generator();
    shuffle(tg::default_generator());
    place.batches_left = starts_.size();
  } else if (shuffled_by_ != place.shuffled_by) {  // resuming in the middle of an epoch
    tg::Generator generator = place.shuffled_by;
    shuffle(generator);
  }
  shuffled_by_ = place.shuffled_by;
  const std::size_t start = starts_.at(place.batches_left - 1);
  --place.batches_left;
  return {order_.begin() + static_cast<std::ptrdiff_t>(start), std::min(batch_size_, order_.size() - start)};
}

void Batches::shuffle(tg::Generator& generator) {
  const tg::IntArray permutation = tg::random_permutation(lengths_.size(), generator);
  order_.assign(permutation.begin(), permutation.end());

  // Sorting by length within runs of 32 batches keeps the order random enough.
  const std::size_t stretch = 32 * batch_size_;
  for (std::size_t begin = 0; begin < order_.size(); begin += stretch) {
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = order_.begin() + static_cast<std::ptrdiff_t>(std::min(begin + stretch, order_.size()));
    std::stable_sort(first, last, [&](std::size_t a, std::size_t b) { return lengths_[a] < lengths_[b]; });
  }
  const std::size_t count = (order_.size() + batch_size_ - 1) / batch_size_;
  starts_.clear();
  for (const std::int64_t batch : tg::random_permutation(count, generator))
    starts_.push_back(static_cast<std::size_t>(batch) * batch_size_);
}

}  // namespace examples
