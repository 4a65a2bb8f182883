#include "vocabulary.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "printable.hpp"

namespace examples {

std::vector<std::string> split(const Text& text, Unit unit) {
  std::vector<std::string> tokens;
  if (unit == Unit::characters) {
    for (const char32_t c : text) tokens.push_back(encode(Text(1, c)));
    return tokens;
  }
  const auto is_space = [](char32_t c) { return c == U' ' || c == U'\t'; };
  for (auto end = text.begin(); end != text.end();) {
    const auto begin = std::find_if_not(end, text.end(), is_space);
    end = std::find_if(begin, text.end(), is_space);
    if (begin != end) tokens.push_back(encode(Text(begin, end)));
  }
  return tokens;
}

Vocabulary::Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  for (const std::string& token : tokens_) {
    const bool is_new = ids_.emplace(token, static_cast<std::int64_t>(first_ + ids_.size())).second;
    if (!is_new)
      throw std::invalid_argument("vocabulary: expected distinct tokens, got " + in_quotes(token) + " twice");
  }
}

std::int64_t Vocabulary::id(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? unknown : found->second;
}

std::vector<std::string> Vocabulary::shown() const {
  std::vector<std::string> shown{shown_padding, shown_unknown, shown_begin, shown_end};
  shown.insert(shown.end(), tokens_.begin(), tokens_.end());
  return shown;
}

Ids Tokenizer::operator()(const Text& text) const {
  Ids ids{Vocabulary::begin};
  for (const std::string& token : split(text, unit)) ids.push_back(vocabulary.id(token));
  ids.push_back(Vocabulary::end);
  if (ids.size() > max_length) ids.resize(max_length);
  return ids;
}

std::vector<std::string> Tokenizer::shown(const Text& text) const {
  std::vector<std::string> tokens = split(text, unit);
  tokens.insert(tokens.begin(), Vocabulary::shown_begin);
  tokens.push_back(Vocabulary::shown_end);
  if (tokens.size() > max_length) tokens.resize(max_length);
  return tokens;
}

Tokenizer make_tokenizer(const std::vector<Text>& texts, Unit unit, std::size_t max_length, std::size_t min_count) {
  std::map<std::string, std::size_t> counts;
  for (const Text& text : texts)
    for (std::string& token : split(text, unit)) ++counts[std::move(token)];

  std::vector<std::string> tokens;
  for (const auto& [token, count] : counts)
    if (count >= min_count) tokens.push_back(token);
  return {unit, max_length, Vocabulary(std::move(tokens))};
}

}  // namespace examples
