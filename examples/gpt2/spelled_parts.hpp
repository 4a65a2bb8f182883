/// Builds a tokenizer from tokens and merges in the spelling of files.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "tokenizer_parts.hpp"

/// Checks its input for consistency. Throws std::runtime_error, naming the file, if it is invalid.
class SpelledParts {
 public:
  /// vocabulary: {token: id}, spelled in byte characters, with a token for each byte. special: {token: id} of tokens
  /// spelled as in texts; the vocabulary may contain them, too. Together their ids are 0, 1, ..., each once.
  SpelledParts(std::string file, const nlohmann::json& vocabulary,
               const std::map<std::string, nlohmann::json>& special);

  /// Adds a merge of two tokens of the vocabulary into a third, as "left right" or two tokens. place: the merge's
  /// position for errors.
  using Place = std::function<std::string()>;
  void add_merge(std::string_view both, const Place& place);
  void add_merge(const std::string& left, const std::string& right, const Place& place);

  /// Throws for tokens that no merge produces, a sign of a truncated merges.txt. Ignores names such as <pad>, not used
  /// in texts.
  void check_merged(const std::string& merges_file) const;

  /// Keeps pieces found in the vocabulary whole, without merges.
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
