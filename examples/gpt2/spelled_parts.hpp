/// A tokenizer put together from tokens and merges as files spell them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "tokenizer_parts.hpp"

/// Sees that what it is given fits together; what does not is a std::runtime_error, which names the file.
class SpelledParts {
 public:
  /// vocabulary: {token: id}, each spelt in the characters that stand for bytes, with one for each byte.
  /// special: {token: id} of those that are spelt as they stand in texts; the vocabulary may have them too.
  /// Together their ids are 0, 1, ..., each once.
  SpelledParts(std::string file, const nlohmann::json& vocabulary,
               const std::map<std::string, nlohmann::json>& special);

  /// The next merge, of two tokens of the vocabulary into a third, as "left right" or as the two.
  /// place: what to call it in an error.
  using Place = std::function<std::string()>;
  void add_merge(std::string_view both, const Place& place);
  void add_merge(const std::string& left, const std::string& right, const Place& place);

  /// Refuses tokens that no text has, since no merge makes them: those of a merges.txt that ends early. Names such as
  /// <pad>, which are no part of texts, stay.
  void check_merged(const std::string& merges_file) const;

  /// Pieces of texts that are tokens of the vocabulary stay whole.
  void take_whole_words();

  const TokenizerParts& parts() const { return parts_; }

 private:
  void number(const std::string& token, const nlohmann::json& id, std::string bytes);
  TokenId find(const std::string& token, const Place& place) const;

  const std::string file_;
  TokenizerParts parts_;
  std::unordered_map<std::string, TokenId> vocabulary_;
  std::unordered_set<std::uint64_t> merged_;
};
