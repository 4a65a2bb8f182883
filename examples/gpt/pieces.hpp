/// A running text in pieces as long as the context.
#pragma once

#include <cstddef>
#include <vector>

#include "../common/batches.hpp"
#include "../common/vocabulary.hpp"
#include "packed_ids.hpp"

/// A text's pieces in random order, a batch at a time. The pieces of an epoch lie side by side, so that each character
/// is learned from once before any is again; those of another are cut elsewhere.
class Pieces {
 public:
  /// Of `length` ids, or all of a shorter text. The text must outlive the pieces.
  Pieces(const PackedIds& text, std::size_t length, std::size_t batch_size);

  /// This rank's part of the batch. -> (B, length). Throws as examples::Batches::next.
  examples::Padded next(examples::Place& place);

 private:
  const PackedIds& text_;
  std::size_t length_, room_;  // room_: how many ids to the right all pieces can move
  examples::Batches batches_;
};

/// All of the texts in pieces of `length` ids or less, in which each but a text's first is once what is to be said: the
/// last of a piece is the first of the next.
std::vector<examples::Ids> cut(const std::vector<PackedIds>& texts, std::size_t length);
