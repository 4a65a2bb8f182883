#include "tokenizer_parts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "byte_level.hpp"
#include "json_file.hpp"
#include "spelled_parts.hpp"
#include "tokenizer_json.hpp"

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char *kVocabulary = "vocab.json", *kMerges = "merges.txt", *kBoth = "tokenizer.json";
constexpr const char* kVersion = "#version";  // begins a first line that is no merge

std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

TokenizerParts read_two_files(const fs::path& folder) {
  const fs::path vocabulary_file = folder / kVocabulary, merges_file = folder / kMerges;
  const json vocabulary = read_json(vocabulary_file);
  std::map<std::string, json> special;
  if (vocabulary.is_object() && vocabulary.contains(TokenizerParts::end_of_text))
    special.emplace(TokenizerParts::end_of_text, vocabulary[TokenizerParts::end_of_text]);
  SpelledParts parts(vocabulary_file.string(), vocabulary, special);

  const std::string merges = read_bytes(merges_file);
  std::string_view rest = merges;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = take_line(rest);
    if (number == 1 && line.starts_with(kVersion)) continue;
    parts.add_merge(line, [&] { return merges_file.string() + ':' + std::to_string(number); });
  }
  return parts.parts();
}

/// Puts the file in its place once it is whole.
void write_file(const fs::path& file, const std::string& bytes) {
  const auto refuse = [&](const std::string& reason) {
    return std::runtime_error(file.string() + ": expected a file to write, which cannot be written: " + reason);
  };
  const fs::path unfinished = file.string() + ".tmp";
  errno = 0;
  std::ofstream out(unfinished, std::ios::binary);
  if (!(out << bytes).flush()) throw refuse(std::strerror(errno));
  out.close();
  std::error_code error;
  fs::rename(unfinished, file, error);
  if (!error) return;
  std::error_code none;
  fs::remove(unfinished, none);
  throw refuse(error.message());
}

}  // namespace

TokenizerParts byte_tokens() {
  std::vector<std::size_t> order(256);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [](std::size_t byte) { return byte_characters()[byte]; });
  TokenizerParts parts;
  for (const std::size_t byte : order) {
    parts.bytes[byte] = static_cast<TokenId>(parts.tokens.size());
    parts.tokens.emplace_back(1, static_cast<char>(byte));
  }
  return parts;
}

TokenizerParts read_tokenizer_parts(const fs::path& folder) {
  const auto is_there = [&](const char* file) {
    std::error_code none;
    return fs::exists(fs::symlink_status(folder / file, none));
  };
  if (is_there(kBoth) && !is_there(kVocabulary) && !is_there(kMerges)) return read_tokenizer_json(folder / kBoth);
  return read_two_files(folder);
}

void save_tokenizer_parts(const TokenizerParts& parts, const fs::path& folder) {
  std::vector<TokenId> special;
  const auto end = std::ranges::find(parts.tokens, TokenizerParts::end_of_text);
  if (end != parts.tokens.end()) special.push_back(static_cast<TokenId>(end - parts.tokens.begin()));
  if (parts.expression != kGpt2Expression || !parts.whole_words.empty() || parts.special != special)
    throw std::invalid_argument(std::string("expected a tokenizer of GPT-2's kind, whose one special token is ") +
                                TokenizerParts::end_of_text + ", given one that vocab.json and merges.txt cannot say");

  std::string vocabulary;
  for (std::size_t id = 0; id < parts.tokens.size(); ++id)
    vocabulary += (id == 0 ? "{\n  " : ",\n  ") + json(spell(parts.tokens[id])).dump() + ": " + std::to_string(id);
  std::string merges = std::string(kVersion) + ": 0.2\n";
  const auto spelled = [&](TokenId id) { return spell(parts.tokens[static_cast<std::size_t>(id)]); };
  for (const Merge& merge : parts.merges) merges += spelled(merge.left) + ' ' + spelled(merge.right) + '\n';

  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw std::runtime_error(folder.string() + ": expected a folder, which cannot be made: " + error.message());
  write_file(folder / kVocabulary, vocabulary + "\n}\n");
  write_file(folder / kMerges, merges);
}
