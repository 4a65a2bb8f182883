/// The training data: pairs of a source and a target, such as a word's letters and its phonemes.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace pronounce {

/// A source and its target as tokens.
struct Pair {
  std::vector<std::string> source, target;
};

struct Pairs {
  std::string name;  ///< of the data, for messages
  std::vector<Pair> train;
  std::vector<Pair> test;  ///< those of every tenth source
};

/// Reads the pronouncing dictionary or the pairs of --data, and prints their number. Throws std::runtime_error, naming
/// the file and for a malformed line its number, if the file cannot be read or has fewer than 10 sources.
Pairs read_pairs(const RunOptions& options);

/// Cuts a text into tokens.
std::vector<std::string> tokens_of(const std::string& text, examples::Unit unit);

/// A text that differs for other pairs.
std::string fingerprint(const Pairs& pairs);

}  // namespace pronounce
