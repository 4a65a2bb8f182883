/// An encoder-decoder with the vocabularies of its sources and targets.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "../common/batches.hpp"
#include "../common/vocabulary.hpp"
#include "model.hpp"
#include "options.hpp"
#include "pairs.hpp"

namespace pronounce {

struct Pronouncer {
  examples::Unit source_unit, target_unit;
  bool has_stress;  ///< true if targets are phonemes, whose vowels end in a digit for their stress
  examples::Vocabulary sources, targets;
  std::size_t source_length, target_length;  ///< maximum number of ids, with begin and end marks
  ModelOptions options;
  EncoderDecoder<> model{{sources.size(), targets.size(), source_length, target_length}, options};

  /// The ids between begin and end marks, truncated to the maximum length.
  examples::Ids encode_source(const std::vector<std::string>& tokens) const;
  examples::Ids encode_target(const std::vector<std::string>& tokens) const;

  /// The ids of an option's text. Throws std::invalid_argument for unknown tokens and for longer texts than in
  /// training.
  examples::Ids read_source(const std::string& option, const std::string& text) const;

  /// The tokens as text, characters joined and words separated by spaces.
  std::string target_text(const examples::Ids& ids) const;

  /// The printed forms of ids.
  std::vector<std::string> shown_source(const examples::Ids& ids) const;
  std::vector<std::string> shown_target(const examples::Ids& ids) const;
};

/// Makes a model for these pairs, untrained.
Pronouncer make_pronouncer(const Pairs& pairs, const PronounceOptions& options);

/// Pairs as ids.
struct EncodedPairs {
  std::vector<examples::Ids> sources, targets;
};
EncodedPairs encode(const Pronouncer& pronouncer, const std::vector<Pair>& pairs);

/// The metadata to reconstruct the pronouncer from a file.
tapegrad::Metadata settings_of(const Pronouncer& pronouncer);

/// Saves the model with this metadata. Throws like tapegrad::save.
void save(const Pronouncer& pronouncer, const std::string& path);

/// Loads a saved pronouncer, or the one in a run's checkpoint. Throws std::runtime_error, naming the file, if it is
/// neither.
Pronouncer load(const std::string& path);

}  // namespace pronounce
