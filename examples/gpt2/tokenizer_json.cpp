#include "tokenizer_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/printable.hpp"
#include "json_file.hpp"
#include "spelled_parts.hpp"

using nlohmann::json;

namespace {

/// A member of an object and its allowed values; empty for any. null also means a missing member.
struct Member {
  const char* name;
  std::vector<json> values = {};
};

/// A value in the file with its path.
struct Part {
  const json& value;
  const std::filesystem::path& file;
  std::string way;  // "model.vocab"; empty for the root

  [[noreturn]] void refuse(const std::string& expected) const {
    throw std::runtime_error(file.string() + (way.empty() ? "" : ": " + way) + ": expected " + expected + ", got " +
                             shown(value));
  }

  /// The member, or null if missing.
  Part operator[](const std::string& member) const {
    static const json none;
    if (!value.is_object()) refuse("an object");
    const auto found = value.find(member);
    return {found == value.end() ? none : *found, file,
            (way.empty() ? "" : way + '.') + examples::printable(member, 60)};
  }

  std::vector<Part> items() const {
    if (!value.is_array()) refuse("a list");
    std::vector<Part> all;
    for (const json& item : value) all.push_back({item, file, way + '[' + std::to_string(all.size()) + ']'});
    return all;
  }

  const std::string& text() const {
    if (!value.is_string()) refuse("text");
    return value.get_ref<const std::string&>();
  }

  void expect_one_of(const std::vector<json>& values) const {
    if (std::ranges::find(values, value) != values.end()) return;
    std::string list;
    for (const json& known : values) list += (list.empty() ? "" : " or ") + known.dump();
    refuse(list);
  }

  /// Throws for members with other names, which may require unsupported features.
  void expect_members(std::initializer_list<Member> members) const {
    for (const auto& [member, values] : members)
      if (const Part part = (*this)[member]; !values.empty()) part.expect_one_of(values);
    for (const auto& given : value.items())
      if (std::ranges::none_of(members, [&](const Member& member) { return member.name == given.key(); }))
        (*this)[given.key()].refuse("none");
  }
};

/// The pre-tokenizer's expression; GPT-2's if it is a single ByteLevel step.
std::string read_expression(const Part& pre_tokenizer) {
  std::vector<Part> steps{pre_tokenizer};
  if (pre_tokenizer["type"].value == "Sequence") {
    pre_tokenizer.expect_members({{"type"}, {"pretokenizers"}});
    steps = pre_tokenizer["pretokenizers"].items();
  }
  if (steps.size() != 1 && steps.size() != 2) pre_tokenizer.refuse("ByteLevel, optionally after Split or Digits");
  const bool digits = steps.size() == 2 && steps.front()["type"].value == "Digits",
             splits = steps.size() == 2 && !digits;
  steps.back().expect_members({{"type", {"ByteLevel"}},
                               {"add_prefix_space", {false}},
                               {"trim_offsets"},
                               {"use_regex", splits ? std::vector<json>{false} : std::vector<json>{true, nullptr}}});
  if (digits) steps.front().expect_members({{"type"}, {"individual_digits", {true}}});
  if (digits) return kDigitsExpression;
  if (!splits) return kGpt2Expression;
  const Part& split = steps.front();
  split.expect_members({{"type", {"Split"}}, {"pattern"}, {"behavior", {"Isolated"}}, {"invert", {false, nullptr}}});
  const Part pattern = split["pattern"];
  pattern.expect_members({{"Regex"}});
  const std::string& expression = pattern["Regex"].text();
  if (expression != kGpt2Expression && expression != kLlama3Expression)
    pattern["Regex"].refuse("the regular expression of GPT-2 or of Llama 3");
  return expression;
}

/// The tokens put before a text. ByteLevel has none: it only concerns offsets, not used here.
std::vector<std::string> read_before(const Part& post_processor) {
  std::vector<std::string> before;
  if (post_processor.value.is_null()) return before;
  const Part type = post_processor["type"];
  type.expect_one_of({"ByteLevel", "TemplateProcessing", "Sequence"});
  if (type.value == "Sequence")
    for (const Part& step : post_processor["processors"].items()) {
      const std::vector<std::string> tokens = read_before(step);
      if (!before.empty() && !tokens.empty()) step.refuse("one TemplateProcessing");
      before.insert(before.end(), tokens.begin(), tokens.end());
    }
  if (type.value != "TemplateProcessing") return before;
  bool has_text = false;
  for (const Part& item : post_processor["single"].items()) {
    if (has_text) item.refuse("nothing after the text");
    has_text = !item["Sequence"].value.is_null();
    if (!has_text) before.push_back(item["SpecialToken"]["id"].text());
  }
  if (!has_text) post_processor["single"].refuse("the text as a Sequence");
  return before;
}

std::map<std::string, json> read_special(const Part& added_tokens) {
  std::map<std::string, json> special;
  if (added_tokens.value.is_null()) return special;
  for (const Part& token : added_tokens.items()) {
    token.expect_members({{"id"},
                          {"content"},
                          {"single_word", {false, nullptr}},
                          {"lstrip", {false, nullptr}},
                          {"rstrip", {false, nullptr}},
                          {"normalized"},
                          {"special"}});
    const std::string& content = token["content"].text();
    if (!special.emplace(content, token["id"].value).second) token.refuse("distinct tokens");
  }
  return special;
}

void read_merges(const Part& merges, SpelledParts& parts) {
  for (const Part& merge : merges.items()) {
    const auto place = [&] { return merge.file.string() + ": " + merge.way; };
    if (merge.value.is_string()) {
      parts.add_merge(merge.text(), place);
      continue;
    }
    const std::vector<Part> tokens = merge.items();
    if (tokens.size() != 2) merge.refuse("two tokens");
    parts.add_merge(tokens[0].text(), tokens[1].text(), place);
  }
}

}  // namespace

TokenizerParts read_tokenizer_json(const std::filesystem::path& file) {
  const json content = read_json(file);
  const Part all{content, file, ""};
  all.expect_members({{"version"},
                      {"truncation", {nullptr}},
                      {"padding", {nullptr}},
                      {"added_tokens"},
                      {"normalizer", {nullptr}},
                      {"pre_tokenizer"},
                      {"post_processor"},
                      {"decoder"},
                      {"model"}});
  const Part model = all["model"];
  // With a token for each byte nothing is unknown, so unk_token has no effect.
  model.expect_members({{"type", {"BPE", nullptr}},
                        {"dropout", {nullptr, 0}},
                        {"unk_token"},
                        {"fuse_unk"},
                        {"continuing_subword_prefix", {nullptr, ""}},
                        {"end_of_word_suffix", {nullptr, ""}},
                        {"byte_fallback", {false, nullptr}},
                        {"ignore_merges", {false, true, nullptr}},
                        {"vocab"},
                        {"merges"}});
  all["decoder"]["type"].expect_one_of({"ByteLevel"});
  const std::string expression = read_expression(all["pre_tokenizer"]);

  const std::map<std::string, json> special = read_special(all["added_tokens"]);
  SpelledParts spelled(file.string() + ": model.vocab", model["vocab"].value, special);
  read_merges(model["merges"], spelled);
  if (model["ignore_merges"].value == true) spelled.take_whole_words();
  TokenizerParts parts = spelled.parts();
  parts.expression = expression;
  for (const std::string& token : read_before(all["post_processor"])) {
    const auto found = special.find(token);
    if (found == special.end()) all["post_processor"].refuse("only tokens in added_tokens before a text");
    parts.before.push_back(found->second);
  }
  return parts;
}
