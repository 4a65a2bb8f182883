#include "pieces.hpp"

#include <tapegrad/tapegrad.hpp>

#include <algorithm>

#include "../common/ranks.hpp"

using examples::Ids;

namespace {

/// The number of pieces of `length` ids in a text, each overlapping its predecessor by one id. One fewer than fit, so
/// their offset can vary.
std::size_t piece_count(const PackedIds& text, std::size_t length) {
  const std::size_t all = (text.size() - 1) / (length - 1);
  return std::max<std::size_t>(2, all) - 1;
}

}  // namespace

Pieces::Pieces(const PackedIds& text, std::size_t length, std::size_t batch_size)
    : text_(text),
      length_(std::min(length, text.size())),
      room_(text.size() - 1 - piece_count(text, length_) * (length_ - 1)),
      batches_(std::vector<std::size_t>(piece_count(text, length_), length_), batch_size) {}

examples::Padded Pieces::next(examples::Place& place) {
  const auto chosen = examples::own_part(batches_.next(place));
  tapegrad::Generator generator = place.shuffled_by;  // a copy: gives the same offset throughout the epoch
  const auto offset =
      static_cast<std::size_t>(tapegrad::uniform<double>({1}, 0, static_cast<double>(room_ + 1), generator)(0));
  const tapegrad::Shape shape{chosen.size(), length_};
  examples::Padded pieces{tapegrad::IntArray(shape), tapegrad::BoolArray(shape, true), chosen.size() * length_};
  for (std::size_t i = 0; i < chosen.size(); ++i)
    for (std::size_t t = 0; t < length_; ++t) pieces.ids(i, t) = text_[offset + chosen[i] * (length_ - 1) + t];
  return pieces;
}

std::vector<Ids> cut(const std::vector<PackedIds>& texts, std::size_t length) {
  std::vector<Ids> pieces;
  for (const PackedIds& text : texts)
    for (std::size_t begin = 0; text.size() - begin > 1;) {
      Ids& piece = pieces.emplace_back(std::min(length, text.size() - begin));
      for (std::size_t t = 0; t < piece.size(); ++t) piece[t] = text[begin + t];
      begin += piece.size() - 1;
    }
  return pieces;
}
