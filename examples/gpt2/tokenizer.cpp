#include "tokenizer.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "tokenizer_files.hpp"

namespace {

/// Collects the ids of a text. Repeated words copy their ids from the first occurrence, for the first kMaxKnown
/// distinct words.
class Encoding {
 public:
  void add(TokenId id) { ids.push_back(id); }

  template <class TokensOf> void add_piece(std::string_view piece, TokensOf tokens_of) {
    if (const auto known = known_.find(piece); known != known_.end()) {
      const auto [begin, count] = known->second;
      for (std::size_t i = 0; i < count; ++i) ids.push_back(ids[begin + i]);
      return;
    }
    const std::size_t begin = ids.size();
    for (const TokenId token : tokens_of(piece)) ids.push_back(token);
    if (known_.size() < kMaxKnown) known_.emplace(piece, std::pair(begin, ids.size() - begin));
  }

  std::vector<std::int64_t> ids;

 private:
  static constexpr std::size_t kMaxKnown = 1 << 18;
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> known_;  // begin and number of ids
};

}  // namespace

Tokenizer Tokenizer::read(const std::filesystem::path& folder) { return Tokenizer(read_tokenizer_parts(folder)); }

void Tokenizer::save(const std::filesystem::path& folder) const { save_tokenizer_parts(parts_, folder); }

Tokenizer::Tokenizer(TokenizerParts parts)
    : parts_(std::move(parts)), pre_tokenizer_(parts_.expression), merges_(parts_.merges), special_(parts_.special) {
  std::ranges::stable_sort(special_, std::greater<>(), [&](TokenId token) { return bytes(token).size(); });
  for (const TokenId token : special_)
    if (const char begin = bytes(token)[0]; special_begins_.find(begin) == std::string::npos) special_begins_ += begin;
}

std::optional<std::int64_t> Tokenizer::end_of_text() const {
  for (const TokenId token : special_)
    if (bytes(token) == TokenizerParts::end_of_text) return token;
  return {};
}

/// Finds the first special token in the text; at equal places the longest.
std::optional<Tokenizer::Found> Tokenizer::find_special(std::string_view text) const {
  for (std::size_t place = 0; (place = text.find_first_of(special_begins_, place)) != text.npos; ++place)
    for (const TokenId token : special_)
      if (text.substr(place).starts_with(bytes(token))) return Found{place, token};
  return {};
}

std::vector<TokenId> Tokenizer::tokens_of(std::string_view piece) const {
  if (!parts_.whole_words.empty())
    if (const auto whole = parts_.whole_words.find(std::string(piece)); whole != parts_.whole_words.end())
      return {whole->second};
  std::vector<TokenId> tokens;
  tokens.reserve(piece.size());
  for (const char byte : piece) tokens.push_back(parts_.bytes[static_cast<unsigned char>(byte)]);
  merges_.apply(tokens);
  return tokens;
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text, Special special) const {
  Encoding encoding;
  const auto add_text = [&](std::string_view part) {
    pre_tokenizer_.cut(part, [&](std::string_view piece) {
      encoding.add_piece(piece, [&](std::string_view word) { return tokens_of(word); });
    });
  };
  if (special == Special::as_tokens)
    while (const auto found = find_special(text)) {
      add_text(text.substr(0, found->place));
      encoding.add(found->token);
      text.remove_prefix(found->place + bytes(found->token).size());
    }
  add_text(text);
  return std::move(encoding.ids);
}

std::vector<std::int64_t> Tokenizer::encode_alone(std::string_view text, Special special) const {
  std::vector<std::int64_t> ids = encode(text, special);
  ids.insert(ids.begin(), parts_.before.begin(), parts_.before.end());
  return ids;
}

const std::string& Tokenizer::bytes(std::int64_t id) const {
  if (id < 0 || static_cast<std::uint64_t>(id) >= size())
    throw std::out_of_range("tokenizer: expected an id from 0 to " + std::to_string(size() - 1) + ", got " +
                            std::to_string(id));
  return parts_.tokens[static_cast<std::size_t>(id)];
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  for (const std::int64_t id : ids) text += bytes(id);
  return text;
}
