/// The texts that language_model learns from and measures itself on.
#pragma once

#include <string>
#include <vector>

#include "../common/batches.hpp"
#include "../common/vocabulary.hpp"
#include "options.hpp"
#include "packed_ids.hpp"

/// The lines of a list, or a running text as one element; in UTF-8, which takes a quarter of what code points take.
struct Corpus {
  std::string name;  // of the file or the language
  std::vector<std::string> train, test;
};

/// Reads what the options name as the source has it, and says on standard output how much that is.
/// Throws std::runtime_error, naming the file and the line, for what cannot be used.
Corpus read_corpus(const Options& options, Source source);

/// A text that other corpora do not have: by it a run that goes on sees that it learns from the same.
std::string fingerprint(const Corpus& corpus);

/// The characters to learn: those that come twice or more. Throws std::runtime_error when there are none.
examples::Vocabulary make_vocabulary(const Corpus& corpus);

/// A text's pieces in random order, a batch at a time. The pieces of an epoch lie side by side, so that each character
/// is learned from once before any is again; those of another are cut elsewhere.
class Pieces {
 public:
  /// Of `length` ids, or all of a shorter text. The text must outlive the pieces.
  Pieces(const PackedIds& text, std::size_t length, std::size_t batch_size);

  /// -> (B, length). Throws as examples::Batches::next.
  examples::Padded next(examples::Place& place);

 private:
  const PackedIds& text_;
  std::size_t length_, room_;  // room_: how many ids to the right all pieces can move
  examples::Batches batches_;
};

/// All of the texts in pieces of `length` ids or less, in which each but a text's first is once what is to be said: the
/// last of a piece is the first of the next.
std::vector<examples::Ids> cut(const std::vector<PackedIds>& texts, std::size_t length);
