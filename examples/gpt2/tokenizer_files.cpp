#include "tokenizer_files.hpp"

#include <tapegrad/tapegrad.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "byte_level.hpp"
#include "file_names.hpp"
#include "files.hpp"
#include "json_file.hpp"
#include "json_settings.hpp"
#include "spelled_parts.hpp"
#include "tokenizer_json.hpp"

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char* kVersion = "#version";  // start of an optional first line

std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

TokenizerParts read_two_files(const fs::path& folder) {
  const fs::path vocabulary_file = folder / file_names::vocabulary, merges_file = folder / file_names::merges;
  const json vocabulary = read_json(vocabulary_file);
  std::map<std::string, json> special;
  if (vocabulary.is_object() && vocabulary.contains(TokenizerParts::end_of_text))
    special.emplace(TokenizerParts::end_of_text, vocabulary[TokenizerParts::end_of_text]);
  SpelledParts parts(vocabulary_file.string(), vocabulary, special);

  const std::string merges = read_file(merges_file);
  std::string_view rest = merges;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = take_line(rest);
    if (number == 1 && line.starts_with(kVersion)) continue;
    parts.add_merge(line, [&] { return merges_file.string() + ':' + std::to_string(number); });
  }
  parts.check_merged(merges_file.string());
  return parts.parts();
}

/// Throws for unsupported settings in tokenizer_config.json, missing from the tokenizer's own files.
void check_settings(const fs::path& folder, bool in_one_file) {
  const fs::path file = folder / "tokenizer_config.json";
  std::error_code none;
  if (!fs::exists(file, none)) return;
  const json read = read_json(file);
  const JsonSettings settings(file.string(), read);
  settings.require("add_prefix_space", false);
  if (in_one_file) return;  // tokenizer.json defines the tokens around a text
  for (const char* around : {"add_bos_token", "add_eos_token"}) settings.require(around, false);
}

}  // namespace

TokenizerParts read_tokenizer_parts(const fs::path& folder) {
  std::error_code none;
  const bool in_one_file = fs::exists(fs::symlink_status(folder / file_names::tokenizer, none));
  check_settings(folder, in_one_file);
  return in_one_file ? read_tokenizer_json(folder / file_names::tokenizer) : read_two_files(folder);
}

void save_tokenizer_parts(const TokenizerParts& parts, const fs::path& folder) {
  std::vector<TokenId> special;
  const auto end = std::ranges::find(parts.tokens, TokenizerParts::end_of_text);
  if (end != parts.tokens.end()) special.push_back(static_cast<TokenId>(end - parts.tokens.begin()));
  if (parts.expression != kGpt2Expression || !parts.whole_words.empty() || parts.special != special ||
      !parts.before.empty())
    throw std::invalid_argument(std::string("expected a GPT-2 tokenizer whose only special token is ") +
                                TokenizerParts::end_of_text +
                                ", got one that vocab.json and merges.txt cannot express");

  std::string vocabulary;
  for (std::size_t id = 0; id < parts.tokens.size(); ++id)
    vocabulary += (id == 0 ? "{\n  " : ",\n  ") + json(spell(parts.tokens[id])).dump() + ": " + std::to_string(id);
  std::string merges = std::string(kVersion) + ": 0.2\n";
  const auto spelled = [&](TokenId id) { return spell(parts.tokens[static_cast<std::size_t>(id)]); };
  for (const Merge& merge : parts.merges) merges += spelled(merge.left) + ' ' + spelled(merge.right) + '\n';

  make_folder(folder);
  tapegrad::save_text(merges, folder / file_names::merges);  // first: incomplete without vocab.json
  tapegrad::save_text(vocabulary + "\n}\n", folder / file_names::vocabulary);
}
