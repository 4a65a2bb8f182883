/// Cuts running text into pieces of the context's length.
#pragma once

#include <cstddef>
#include <vector>

#include "../common/batches.hpp"
#include "../common/vocabulary.hpp"
#include "packed_ids.hpp"

/// Batches of a text's pieces in random order. An epoch's pieces are adjacent, so each character is predicted at most
/// once per epoch. The offset of the pieces changes between epochs.
class Pieces {
 public:
  /// Pieces of `length` ids, or the whole of a shorter text. The text must outlive this object.
  Pieces(const PackedIds& text, std::size_t length, std::size_t batch_size);

  /// This rank's part of the batch. -> (B, length). Throws like examples::Batches::next.
  examples::Padded next(examples::Place& place);

 private:
  const PackedIds& text_;
  std::size_t length_, room_;  // room_: maximum offset of the pieces
  examples::Batches batches_;
};

/// Cuts texts into pieces of at most `length` ids. A piece's last id is the next one's first, so each id except a
/// text's first is predicted exactly once.
std::vector<examples::Ids> cut(const std::vector<PackedIds>& texts, std::size_t length);
