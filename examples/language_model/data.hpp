/// The texts that language_model learns from and measures itself on.
#pragma once

#include <string>
#include <vector>

#include "../common/vocabulary.hpp"
#include "options.hpp"

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
