/// Converts texts to token ids.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "text.hpp"

namespace examples {

/// The unit of tokens: characters, or words separated by spaces and tabs.
enum class Unit { characters, words };

std::vector<std::string> split(const Text& text, Unit unit);

using Ids = std::vector<std::int64_t>;

/// Numbers tokens. The first ids are special: padding, unknown tokens, and the begin and end of a text.
class Vocabulary {
 public:
  static constexpr std::int64_t padding = 0, unknown = 1, begin = 2, end = 3;

  /// Throws std::invalid_argument for duplicate tokens.
  explicit Vocabulary(std::vector<std::string> tokens);

  /// The number of ids, with the special ones.
  std::size_t size() const { return first_ + tokens_.size(); }
  const std::vector<std::string>& tokens() const { return tokens_; }

  /// Printed forms of the special ids.
  static constexpr const char *shown_padding = "(padding)", *shown_unknown = "(unknown)", *shown_begin = "⊢",
                              *shown_end = "⊣";

  std::int64_t id(const std::string& token) const;
  /// The token of an id > `end`.
  const std::string& token(std::int64_t id) const { return tokens_.at(static_cast<std::size_t>(id) - first_); }

  /// The printed forms of all ids, in order.
  std::vector<std::string> shown() const;

 private:
  static constexpr std::size_t first_ = end + 1;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int64_t> ids_;
};

/// Turns texts into ids: begin, the tokens, end.
struct Tokenizer {
  Unit unit;
  std::size_t max_length;  ///< longer texts are truncated
  Vocabulary vocabulary;

  Ids operator()(const Text& text) const;

  /// The text's tokens in printed form, one per id.
  std::vector<std::string> shown(const Text& text) const;
};

/// Makes a tokenizer whose vocabulary holds the tokens that occur at least `min_count` times. Rarer ones are unknown;
/// they train the model's vector for unknown tokens. With a `min_count` of 1, that vector stays untrained.
Tokenizer make_tokenizer(const std::vector<Text>& texts, Unit unit, std::size_t max_length, std::size_t min_count = 2);

}  // namespace examples
