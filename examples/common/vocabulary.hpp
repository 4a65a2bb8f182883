/// From texts to the ids that a model works on.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "text.hpp"

namespace examples {

/// What a text is cut into: its characters, or its words, which stand apart by spaces.
enum class Unit { characters, words };

std::vector<std::string> split(const Text& text, Unit unit);

using Ids = std::vector<std::int64_t>;

/// Numbers tokens. The first ids stand for no token of the text: padding, a token that the vocabulary lacks, and the
/// begin and the end of a text.
class Vocabulary {
 public:
  static constexpr std::int64_t padding = 0, unknown = 1, begin = 2, end = 3;

  /// Throws std::invalid_argument for a token that is there twice.
  explicit Vocabulary(std::vector<std::string> tokens);

  /// How many ids there are.
  std::size_t size() const { return first_ + tokens_.size(); }
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// What people are shown for the ids that stand for no token.
  static constexpr const char *shown_padding = "(padding)", *shown_unknown = "(unknown)", *shown_begin = "⊢",
                              *shown_end = "⊣";

  std::int64_t id(const std::string& token) const;
  /// The token of an id from `end` + 1 on.
  const std::string& token(std::int64_t id) const { return tokens_.at(static_cast<std::size_t>(id) - first_); }

  /// What people are shown for every id, in their order.
  std::vector<std::string> shown() const;

 private:
  static constexpr std::size_t first_ = end + 1;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int64_t> ids_;
};

/// Turns texts into ids: begin, the tokens, end.
struct Tokenizer {
  Unit unit;
  std::size_t max_length;  ///< longer texts lose their end
  Vocabulary vocabulary;

  Ids operator()(const Text& text) const;

  /// The tokens that these ids stand for, to be shown to people.
  std::vector<std::string> shown(const Text& text) const;
};

/// A tokenizer for the tokens that the texts have `min_count` times or more. Rarer ones are unknown to it, so that a
/// model can learn what an unknown token is like; with a `min_count` of 1 there is none of them to learn from.
Tokenizer make_tokenizer(const std::vector<Text>& texts, Unit unit, std::size_t max_length, std::size_t min_count = 2);

}  // namespace examples
