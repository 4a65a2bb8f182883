/// Training and test data of language_model.
#pragma once

#include <string>
#include <vector>

#include "../common/vocabulary.hpp"
#include "options.hpp"

/// The lines of a list, or running text as one element. Stored as UTF-8, up to four times smaller than code points.
struct Corpus {
  std::string name;  // file or language
  std::vector<std::string> train, test;
};

/// Reads the data named in the options in the form of `source`, and prints its size. Throws std::runtime_error, naming
/// the file and the line, for unusable data.
Corpus read_corpus(const LanguageModelOptions& options, Source source);

/// A hash of the corpus. A resumed run checks it to detect other data.
std::string fingerprint(const Corpus& corpus);

/// The characters found at least twice in the training data. Throws std::runtime_error if there are none.
examples::Vocabulary make_vocabulary(const Corpus& corpus);
