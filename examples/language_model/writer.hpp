/// A language model that reads and writes characters.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../common/text.hpp"
#include "../common/vocabulary.hpp"
#include "../gpt/model.hpp"
#include "../gpt/packed_ids.hpp"
#include "options.hpp"

/// A language model with what it takes to use it on texts.
struct Writer {
  Source source;
  examples::Vocabulary vocabulary;
  std::set<std::string> list;  ///< every line of the list that it learned from; what is not in it is invented
  ModelOptions options;
  LanguageModel<> model{vocabulary.size(), options};

  bool writes_lines() const { return source != Source::text; }

  /// The ids of a line, between the marks of its begin and end, or of a running text. A line that is longer than the
  /// context loses its end.
  PackedIds encode(std::string_view text) const;

  /// The ids that a text begins with. A line begins with the mark of its begin, a text without a prompt in a new line.
  /// Throws std::invalid_argument for characters that were not learned and a prompt that leaves no room for more.
  examples::Ids read_prompt(const examples::Text& prompt) const;

  /// The ids of a text to --explain, all of which the model sees at once. Throws std::invalid_argument for characters
  /// that were not learned, a text that is too long, and one in which nothing follows anything.
  examples::Ids read_explained(const examples::Text& text) const;

  /// The ids of a text to step on: a line between the marks of its begin and end, or a running text; of a long one as
  /// many as the model sees, and the one that follows. Throws std::invalid_argument for characters that were not
  /// learned, and a text in which nothing follows anything.
  examples::Ids read_step(const examples::Text& text) const;

  /// The characters of ids, to be shown to people.
  std::vector<std::string> shown(const examples::Ids& ids) const;
};

/// What a file keeps beside the parameters to make the writer again.
tapegrad::Metadata settings_of(const Writer& writer);

/// Writes the model to a file, with all that the writer needs. Throws as tapegrad::save does.
void save(const Writer& writer, const std::string& path);

/// Reads what save has written, or the model of a run that is kept whole. Throws std::runtime_error, naming the file,
/// when it is neither.
Writer load(const std::string& path);
