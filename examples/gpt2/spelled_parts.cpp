#include "spelled_parts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "../common/printable.hpp"
#include "byte_level.hpp"
#include "json_file.hpp"

using examples::in_quotes, nlohmann::json;

namespace {

[[noreturn]] void refuse(const std::string& place, const std::string& expected, const std::string& given) {
  throw std::runtime_error(place + ": expected " + expected + ", got " + given);
}

}  // namespace

SpelledParts::SpelledParts(std::string file, const json& vocabulary, const std::map<std::string, json>& special)
    : file_(std::move(file)) {
  if (!vocabulary.is_object()) refuse(file_, "a vocabulary {\"token\": id, ...}", shown(vocabulary));
  const auto both = std::ranges::count_if(special, [&](auto& token) { return vocabulary.contains(token.first); });
  parts_.tokens.resize(vocabulary.size() + special.size() - static_cast<std::size_t>(both));

  for (const auto& [token, id] : special) {
    number(token, id, token);
    parts_.special.push_back(id);
  }
  for (const auto& [token, id] : vocabulary.items()) {
    const auto known = special.find(token);
    if (known != special.end() && known->second != id)
      refuse(file_, "one id for " + in_quotes(token), shown(id) + " and " + shown(known->second));
    if (known == special.end()) {
      auto bytes = unspell(token);
      if (!bytes) refuse(file_, "tokens spelled in the 256 byte characters", in_quotes(token));
      number(token, id, std::move(*bytes));
    }
    vocabulary_.emplace(token, id);
  }
  std::ranges::sort(parts_.special);

  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string token = spell(std::string(1, static_cast<char>(byte)));
    const auto found = vocabulary_.find(token);
    if (found == vocabulary_.end()) refuse(file_, "a token for each byte", "none for " + in_quotes(token));
    parts_.bytes[byte] = found->second;
  }
}

void SpelledParts::number(const std::string& token, const json& id, std::string bytes) {
  if (bytes.empty()) refuse(file_, "nonempty tokens", "an empty one");
  const std::size_t size = parts_.tokens.size();
  const bool in_range = id.is_number_unsigned() && id.get<std::uint64_t>() < size;
  if (!in_range || !parts_.tokens[id].empty())
    refuse(file_, "the ids 0 to " + std::to_string(size - 1) + ", each once",
           shown(id) + " for " + in_quotes(token) + (in_range ? ", an id already in use" : ""));
  parts_.tokens[id] = std::move(bytes);
}

TokenId SpelledParts::find(const std::string& token, const Place& place) const {
  const auto found = vocabulary_.find(token);
  if (found == vocabulary_.end())
    refuse(place(), "a merge of vocabulary tokens into another one",
           in_quotes(token) + ", which is not in the vocabulary");
  return found->second;
}

void SpelledParts::add_merge(std::string_view both, const Place& place) {
  const std::size_t space = both.find(' ');
  if (space == both.npos || both.find(' ', space + 1) != both.npos)
    refuse(place(), "two tokens with a space between them", in_quotes(both));
  add_merge(std::string(both.substr(0, space)), std::string(both.substr(space + 1)), place);
}

void SpelledParts::add_merge(const std::string& left, const std::string& right, const Place& place) {
  const Merge merge{find(left, place), find(right, place), find(left + right, place)};
  if (!merged_.insert(pair_key(merge.left, merge.right)).second)
    refuse(place(), "distinct merges", in_quotes(left + ' ' + right) + " twice");
  parts_.merges.push_back(merge);
}

void SpelledParts::check_merged(const std::string& merges_file) const {
  std::vector<bool> made(parts_.tokens.size());
  const auto make = [&](TokenId id) { made[static_cast<std::size_t>(id)] = true; };
  for (const TokenId id : parts_.bytes) make(id);
  for (const TokenId id : parts_.special) make(id);
  for (const Merge& merge : parts_.merges) make(merge.merged);
  for (std::size_t id = 0; id < made.size(); ++id) {
    const std::string& token = parts_.tokens[id];
    if (!made[id] && !(token.starts_with('<') && token.ends_with('>')))
      refuse(merges_file, "a merge for each token of the vocabulary", "none for " + in_quotes(spell(token)));
  }
}

void SpelledParts::take_whole_words() {
  for (const auto& [token, id] : vocabulary_)
    parts_.whole_words.emplace(parts_.tokens[static_cast<std::size_t>(id)], id);
}
