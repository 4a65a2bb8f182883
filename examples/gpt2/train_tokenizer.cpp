#include "train_tokenizer.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../common/progress.hpp"

namespace {

using Words = std::unordered_map<std::string_view, std::int64_t>;  // counts in the text

Words count_words(std::string_view text) {
  constexpr std::string_view end = TokenizerParts::end_of_text;
  const PreTokenizer pre_tokenizer;
  Words words;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(end));
    pre_tokenizer.cut(part, [&](std::string_view word) { ++words[word]; });
    text.remove_prefix(std::min(part.size() + end.size(), text.size()));
  }
  return words;
}

/// The tokens of distinct words, and each pair's count in the text and places in the words. A merge visits only its
/// pair's places.
class Pairs {
 public:
  Pairs(const Words& words, const TokenizerParts& parts);

  /// The most frequent pair, or none if no pair occurs twice.
  std::optional<std::uint64_t> most_frequent();

  /// Replaces all occurrences of the pair by a token.
  void merge(std::uint64_t pair, TokenId merged);

 private:
  struct Place {  // a token with its neighbors, `none` if missing
    TokenId token;
    std::uint32_t previous, next, word;
  };
  struct Found {
    std::int64_t count = 0;
    std::vector<std::uint32_t> left_places;  // places of left tokens in order; some may be outdated
  };
  struct Counted {
    std::int64_t count;
    std::uint64_t pair;
    bool operator<(const Counted& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr TokenId kMerged = -1;  // marks a token merged into its predecessor

  bool is_pair(std::uint32_t left) const { return left != none && places_[left].next != none; }
  std::uint64_t pair_at(std::uint32_t left) const {
    return pair_key(places_[left].token, places_[places_[left].next].token);
  }
  void remember(std::uint32_t left);
  void remove(std::uint32_t left);

  std::vector<Place> places_;
  std::vector<std::int64_t> counts_;  // of words
  std::unordered_map<std::uint64_t, Found> found_;
  std::vector<std::uint64_t> grown_;    // pairs with counts above the queued ones, with duplicates
  std::priority_queue<Counted> queue_;  // upper bounds of the counts
};

Pairs::Pairs(const Words& words, const TokenizerParts& parts) {
  for (const auto& [word, count] : words) {
    const auto first = static_cast<std::uint32_t>(places_.size()),
               end = first + static_cast<std::uint32_t>(word.size());
    for (std::uint32_t place = first; place < end; ++place)
      places_.push_back({parts.bytes[static_cast<unsigned char>(word[place - first])],
                         place == first ? none : place - 1, place + 1 == end ? none : place + 1,
                         static_cast<std::uint32_t>(counts_.size())});
    counts_.push_back(count);
  }
  for (std::uint32_t place = 0; place < places_.size(); ++place) remember(place);
}

void Pairs::remember(std::uint32_t left) {
  if (!is_pair(left)) return;
  const std::uint64_t pair = pair_at(left);
  Found& found = found_[pair];
  found.count += counts_[places_[left].word];
  found.left_places.push_back(left);
  grown_.push_back(pair);
}

void Pairs::remove(std::uint32_t left) {
  if (!is_pair(left)) return;
  const auto found = found_.find(pair_at(left));
  if ((found->second.count -= counts_[places_[left].word]) == 0) found_.erase(found);
}

std::optional<std::uint64_t> Pairs::most_frequent() {
  std::ranges::sort(grown_);
  grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
  for (const std::uint64_t pair : grown_)
    if (const auto found = found_.find(pair); found != found_.end()) queue_.push({found->second.count, pair});
  grown_.clear();

  while (!queue_.empty()) {
    const auto [count, pair] = queue_.top();
    const auto found = found_.find(pair);
    const std::int64_t now = found == found_.end() ? 0 : found->second.count;
    if (now == count) return count > 1 ? std::optional(pair) : std::nullopt;
    queue_.pop();
    if (now > 0 && now < count) queue_.push({now, pair});
  }
  return {};
}

void Pairs::merge(std::uint64_t pair, TokenId merged) {
  const std::vector<std::uint32_t> left_places = std::move(found_.at(pair).left_places);
  for (const std::uint32_t left : left_places) {
    if (places_[left].token == kMerged || !is_pair(left) || pair_at(left) != pair) continue;
    const std::uint32_t previous = places_[left].previous, right = places_[left].next, next = places_[right].next;
    for (const std::uint32_t changed : {previous, left, right}) remove(changed);
    places_[left].token = merged;
    places_[left].next = next;
    places_[right].token = kMerged;
    if (next != none) places_[next].previous = left;
    for (const std::uint32_t changed : {previous, left}) remember(changed);
  }
}

}  // namespace

Tokenizer train_tokenizer(std::string_view text, std::size_t vocabulary,
                          const std::function<void(std::size_t)>& report) {
  TokenizerParts parts = byte_tokens();
  const auto refuse = [&](const std::string& expected, std::size_t given) {
    return std::invalid_argument("train_tokenizer: expected " + expected + ", got " + examples::with_commas(given));
  };
  if (vocabulary <= parts.tokens.size())
    throw refuse("a vocabulary of at least 257 tokens, the bytes and " + std::string(TokenizerParts::end_of_text),
                 vocabulary);
  if (text.size() > std::numeric_limits<std::int32_t>::max()) throw refuse("a text of less than 2 GB", text.size());

  Pairs pairs(count_words(text), parts);
  while (parts.tokens.size() + 1 < vocabulary) {
    const auto pair = pairs.most_frequent();
    if (!pair)
      throw refuse("a vocabulary of at most " + examples::with_commas(parts.tokens.size() + 1) +
                       ", because after that no pair occurs twice in the text",
                   vocabulary);
    const auto left = static_cast<TokenId>(*pair >> 32), right = static_cast<TokenId>(*pair & 0xffffffff);
    const auto merged = static_cast<TokenId>(parts.tokens.size());  // a new id: no other merge gives these bytes
    const auto bytes = [&](TokenId id) { return parts.tokens[static_cast<std::size_t>(id)]; };
    parts.tokens.push_back(bytes(left) + bytes(right));
    parts.merges.push_back({left, right, merged});
    pairs.merge(*pair, merged);
    if (report) report(parts.tokens.size());
  }
  parts.special.push_back(static_cast<TokenId>(parts.tokens.size()));
  parts.tokens.emplace_back(TokenizerParts::end_of_text);
  return Tokenizer(std::move(parts));
}
