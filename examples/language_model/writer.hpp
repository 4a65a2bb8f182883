/// A character-level language model.
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

/// A language model with its vocabulary and options.
struct Writer {
  Source source;
  examples::Vocabulary vocabulary;
  std::set<std::string> list;  ///< all lines of the data; other generated lines are new
  ModelOptions options;
  LanguageModel<> model{vocabulary.size(), options};

  bool writes_lines() const { return source != Source::text; }

  /// The ids of a line with begin and end marks, or of running text. Truncates lines longer than the context.
  PackedIds encode(std::string_view text) const;

  /// The ids of a prompt, after the begin mark for lines. An empty prompt for running text is a newline. Throws
  /// std::invalid_argument for unknown characters and for a prompt that fills the context.
  examples::Ids read_prompt(const examples::Text& prompt) const;

  /// The ids of a text to --explain. Throws std::invalid_argument for unknown characters, a text longer than the
  /// context, and one without predicted characters.
  examples::Ids read_explained(const examples::Text& text) const;

  /// The ids of a text for --page: a line with begin and end marks, or running text, truncated to the context and the
  /// next id. Throws std::invalid_argument for unknown characters and a text without predicted characters.
  examples::Ids read_step(const examples::Text& text) const;

  /// The printed forms of ids.
  std::vector<std::string> shown(const examples::Ids& ids) const;
};

/// The metadata needed to reconstruct the writer from a file.
tapegrad::Metadata settings_of(const Writer& writer);

/// Saves the model with the writer's metadata. Throws like tapegrad::save.
void save(const Writer& writer, const std::string& path);

/// Loads a saved writer, or the one in a run's checkpoint. Throws std::runtime_error, naming the file, if it is
/// neither.
Writer load(const std::string& path);
