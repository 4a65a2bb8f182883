// Tokenizer files: consistent files load; others are refused in one line with the file's name.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <paths.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../../examples/gpt2/byte_level.hpp"
#include "../../../examples/gpt2/files.hpp"
#include "../../../examples/gpt2/json_file.hpp"
#include "../../../examples/gpt2/tokenizer.hpp"
#include "temporary_folder.hpp"
#include "text.hpp"

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

using Ids = std::vector<std::int64_t>;

const fs::path kVocabulary = fs::path(TAPEGRAD_SOURCES) / "tests/gpt2/vocabulary";

// The bytes, "ab", " ab" and <|endoftext|>.
json small_vocabulary() {
  json vocabulary = json::object();
  for (int byte = 0; byte < 256; ++byte) vocabulary[spell(std::string(1, static_cast<char>(byte)))] = byte;
  vocabulary["ab"] = 256;
  vocabulary["Ġab"] = 257;
  vocabulary["<|endoftext|>"] = 258;
  return vocabulary;
}

constexpr const char* kMerges = "#version: 0.2\na b\nĠ ab\n";

json added(const std::string& content, int id) {
  return {{"id", id},        {"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", true}, {"special", true}};
}

// In the format of GPT-2's tokenizers.
json small_tokenizer_json() {
  json vocabulary = small_vocabulary();
  const json byte_level{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", {added("<|endoftext|>", 258)}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}}},
          {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}}},
          {"model",
           {{"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"fuse_unk", false},
            {"vocab", vocabulary},
            {"merges", {"a b", "Ġ ab"}}}}};
}

// The same with Llama 3's fields.
json small_llama3_json() {
  json file = small_tokenizer_json();
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", kLlama3Expression}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}}}}};
  file["post_processor"] = {{"type", "Sequence"},
                            {"processors",
                             {{{"type", "ByteLevel"}},
                              {{"type", "TemplateProcessing"},
                               {"single",
                                {{{"SpecialToken", {{"id", "<|begin|>"}, {"type_id", 0}}}},
                                 {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}}}}}};
  json& model = file["model"];
  model["type"] = "BPE";
  model["byte_fallback"] = false;
  model["ignore_merges"] = true;
  model["merges"] = json::array({{"a", "b"}, {"Ġ", "ab"}});
  model["vocab"].erase("<|endoftext|>");
  model["vocab"]["bab"] = 258;  // no merge produces it
  file["added_tokens"] = {added("<|begin|>", 259), added("<|begin|>é", 260)};
  return file;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
    return "none";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

void check_refused(const TemporaryFolder& folder, const std::string& front, const std::string& words) {
  const std::string message = message_of([&] { Tokenizer::read(folder / "."); });
  CAPTURE(message);
  CHECK(contains(message, "/./" + front + ": "));
  CHECK(contains(message, words));
  CHECK(std::ranges::none_of(message, [](char c) { return static_cast<unsigned char>(c) < ' '; }));
  CHECK(message.size() < folder.path("").size() + 300);
}

void check_vocabulary_refused(const std::string& vocabulary, const std::string& words) {
  const TemporaryFolder folder;
  folder.write("vocab.json", vocabulary);
  folder.write("merges.txt", kMerges);
  check_refused(folder, "vocab.json", words);
}

void check_merges_refused(const std::string& merges, int line, const std::string& words) {
  const TemporaryFolder folder;
  folder.write("vocab.json", small_vocabulary().dump());
  folder.write("merges.txt", merges);
  check_refused(folder, "merges.txt:" + std::to_string(line), words);
}

// "a[0].b" for "/a/0/b"
std::string way_to(const std::string& place) {
  std::string way;
  std::istringstream steps(place.substr(std::min<std::size_t>(1, place.size())));
  for (std::string step; std::getline(steps, step, '/');)
    way += step[0] >= '0' && step[0] <= '9' ? '[' + step + ']' : (way.empty() ? "" : ".") + step;
  return way;
}

// Expects an error with the name of the invalid field, by default that of the changed one.
void check_json_refused(json file, const std::string& place, const json& value, const std::string& words,
                        const std::optional<std::string>& way = {}) {
  CAPTURE(place);
  file[json::json_pointer(place)] = value;
  const TemporaryFolder folder;
  folder.write("tokenizer.json", file.dump());
  const std::string named = way.value_or(way_to(place));
  check_refused(folder, "tokenizer.json" + (named.empty() ? "" : ": " + named), words);
}

Tokenizer read_json_tokenizer(const json& file) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", file.dump());
  return Tokenizer::read(folder / ".");
}

}  // namespace

TEST_CASE("A tokenizer is read as written by Python, with or without escapes, and with either line end") {
  const TemporaryFolder folder;
  for (const bool ascii : {true, false})
    for (const char* merges : {"#version: 0.2\na b\nĠ ab\n", "#version: 0.2\r\na b\r\nĠ ab\r\n", "a b\nĠ ab"}) {
      folder.write("vocab.json", small_vocabulary().dump(-1, ' ', ascii));
      folder.write("merges.txt", merges);
      const Tokenizer tokenizer = Tokenizer::read(folder / ".");
      CHECK(tokenizer.size() == 259);
      CHECK(tokenizer.encode("ab ab.") == Ids{256, 257, '.'});
      CHECK(tokenizer.end_of_text() == 258);
    }
}

TEST_CASE("A line of merges may begin with the comment character") {
  const TemporaryFolder folder;
  json vocabulary = small_vocabulary();
  vocabulary["##"] = 259;
  folder.write("vocab.json", vocabulary.dump());
  folder.write("merges.txt", std::string(kMerges) + "# #\n");
  CHECK(Tokenizer::read(folder / ".").encode("###") == Ids{259, '#'});
}

TEST_CASE("tokenizer.json is read, or the two older files if it is missing") {
  const Tokenizer tokenizer = read_json_tokenizer(small_tokenizer_json());
  CHECK(tokenizer.encode("ab ab12 <|endoftext|>", Special::as_tokens) == Ids{256, 257, '1', '2', ' ', 258});
  CHECK(tokenizer.end_of_text() == 258);

  const TemporaryFolder folder;
  tokenizer.save(folder / "saved");
  CHECK(json::parse(read_file(folder / "saved/vocab.json")) == small_vocabulary());
  CHECK(read_file(folder / "saved/merges.txt") == kMerges);

  CHECK(Tokenizer::read(folder / "saved").size() == 259);
  json other = small_tokenizer_json();
  other["added_tokens"].push_back(added("<|x|>", 259));
  folder.write("saved/tokenizer.json", other.dump());
  CHECK(Tokenizer::read(folder / "saved").size() == 260);
}

TEST_CASE("Llama 3's tokenizer.json has its own expression, unsplit words and special tokens") {
  const Tokenizer tokenizer = read_json_tokenizer(small_llama3_json());
  CHECK(tokenizer.size() == 261);
  CHECK(tokenizer.encode("ab.ab1 ab") == Ids{256, '.', 256, '1', 257});
  CHECK(tokenizer.encode("bab") == Ids{258});
  CHECK(tokenizer.encode("babab") == Ids{'b', 256, 256});
  CHECK(tokenizer.encode("a<|begin|><|begin|>éb", Special::as_tokens) == Ids{'a', 259, 260, 'b'});
  CHECK(tokenizer.decode(Ids{260}) == "<|begin|>é");
  CHECK(!tokenizer.end_of_text());
  CHECK(tokenizer.encode_alone("ab") == Ids{259, 256});

  const TemporaryFolder folder;
  CHECK_THROWS_AS(tokenizer.save(folder / "saved"), std::invalid_argument);
  CHECK(folder.files() == 0);
}

TEST_CASE("SmolLM's tokenizer.json splits digits and adds no prefix") {
  json file = small_tokenizer_json();
  const json byte_level = file["pre_tokenizer"];
  file["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, byte_level}}};
  const Tokenizer tokenizer = read_json_tokenizer(file);
  CHECK(tokenizer.encode_alone(" ab 12") == Ids{257, ' ', '1', '2'});
  check_json_refused(file, "/pre_tokenizer/pretokenizers/0/individual_digits", false, "true, got false");
}

TEST_CASE("An invalid vocabulary is refused") {
  const auto refused_with = [](const std::string& token, const json& id, const std::string& words) {
    json vocabulary = small_vocabulary();
    vocabulary[token] = id;
    check_vocabulary_refused(vocabulary.dump(), words);
  };
  refused_with("ab", 258, "the ids 0 to 258, each once, got 258 for 'ab', an id already in use");
  refused_with("ab", 259, "the ids 0 to 258, each once, got 259 for 'ab'");
  refused_with("ab", -1, "got -1 for 'ab'");
  refused_with("ab", 1.5, "got 1.5 for 'ab'");
  refused_with("ab", "1", "got \"1\" for 'ab'");
  refused_with("ab", nullptr, "got null for 'ab'");
  refused_with("ab", std::uint64_t{1} << 63, "got 9223372036854775808 for 'ab'");
  refused_with("ab", json::array({256}), "got [256] for 'ab'");
  refused_with("a b", 259, "tokens spelled in the 256 byte characters, got 'a b'");
  refused_with("文", 259, "got '文'");
  refused_with("", 259, "got an empty one");
  json lacking = small_vocabulary();
  lacking.erase("Ā");
  lacking["aa"] = 0;
  check_vocabulary_refused(lacking.dump(), "a token for each byte, got none for 'Ā'");
  check_vocabulary_refused("{\"a\": 0, \"a\": 0}", "distinct names in an object, got 'a' twice");
  for (const char* other : {"[]", "null", "1", "\"a\""})
    check_vocabulary_refused(other, "a vocabulary {\"token\": id, ...}");
  check_vocabulary_refused("{}", "a token for each byte");
  for (const char* no_json : {"", "{", "{\"a\": 0", "\x1b[31m\n", "{\"\xff\": 0}", "{} {}"})
    check_vocabulary_refused(no_json, "JSON, got a syntax error at byte ");
  check_vocabulary_refused(std::string(1000, '\0'), "JSON, got a syntax error at byte 1");
  check_vocabulary_refused(std::string(10'000, '['), "JSON with at most 100 nested levels, got more");
  check_vocabulary_refused(repeated("{\"a\":", 10'000), "JSON with at most 100 nested levels, got more");
}

TEST_CASE("Merges that do not match the vocabulary are refused with their line") {
  check_merges_refused("#version: 0.2\na b\na c\n", 3,
                       "a merge of vocabulary tokens into another one, got 'ac', which is not in the vocabulary");
  check_merges_refused("a b\n文 b\n", 2, "got '文', which is not in the vocabulary");
  check_merges_refused("a b\nab abc\n", 2, "got 'abc', which is not in the vocabulary");
  check_merges_refused("a b\na b\n", 2, "distinct merges, got 'a b' twice");
  for (const char* line : {"ab", "a b c", "a  b", "a b ", " a b", "a\tb"}) {
    CAPTURE(line);
    check_merges_refused("a b\n" + std::string(line) + "\n", 2, "");
  }
  check_merges_refused("a b\n\nĠ ab\n", 2, "two tokens with a space between them, got ''");
  check_merges_refused("a b\n" + std::string(1'000'000, 'x'), 2, "two tokens with a space between them");
  check_merges_refused("a b\n\x1b[31m \xff\n", 2, "got '\\x1b[31m', which is not in the vocabulary");
}

TEST_CASE("Truncated merges are refused with the missing token; token names need no merges") {
  const TemporaryFolder folder;
  json vocabulary = small_vocabulary();
  folder.write("vocab.json", vocabulary.dump());
  for (const auto& [merges, token] : {std::pair("", "'ab'"), std::pair("#version: 0.2\na b\n", "'Ġab'")}) {
    folder.write("merges.txt", merges);
    check_refused(folder, "merges.txt", "a merge for each token of the vocabulary, got none for " + std::string(token));
  }
  vocabulary["<pad>"] = 259;
  folder.write("vocab.json", vocabulary.dump());
  folder.write("merges.txt", kMerges);
  CHECK(Tokenizer::read(folder / ".").encode("<pad>").size() == 5);
}

TEST_CASE("Paths that are not files are refused without waiting") {
  const auto make = [](const TemporaryFolder& folder, const std::string& but) {
    if (but != "vocab.json") folder.write("vocab.json", small_vocabulary().dump());
    if (but != "merges.txt") folder.write("merges.txt", kMerges);
  };
  for (const std::string file : {"vocab.json", "merges.txt"}) {
    const TemporaryFolder folder;
    make(folder, file);
    check_refused(folder, file, "cannot be opened: No such file");
    fs::create_directory(folder / file);
    check_refused(folder, file, "expected a regular file, got a folder, pipe or device");
    fs::remove(folder / file);
    REQUIRE(::mkfifo((folder / file).c_str(), 0600) == 0);
    check_refused(folder, file, "expected a regular file, got a folder, pipe or device");
    fs::remove(folder / file);
    fs::create_symlink(file, folder / file);
    check_refused(folder, file, "cannot be opened: Too many levels");
    fs::remove(folder / file);
    folder.write(file, "");
    fs::resize_file(folder / file, std::uintmax_t{1} << 40);                        // sparse
    const std::string most = file == "vocab.json" ? "134,217,728" : "536,870,912";  // JSON values take more memory
    check_refused(folder, file, "expected at most " + most + " bytes, got 1,099,511,627,776");
  }
  const TemporaryFolder empty;
  check_refused(empty, "vocab.json", "No such file");
  CHECK(contains(message_of([&] { Tokenizer::read(empty / "missing"); }), "missing/vocab.json: cannot be opened"));
}

TEST_CASE("Unsupported settings in tokenizer.json are refused by name") {
  const json gpt2 = small_tokenizer_json(), llama3 = small_llama3_json();
  check_json_refused(gpt2, "/normalizer", {{"type", "NFC"}}, "null, got {\"type\":\"NFC\"}");
  check_json_refused(gpt2, "/truncation", {{"max_length", 8}}, "null");
  check_json_refused(gpt2, "/padding", {{"length", 8}}, "null");
  check_json_refused(gpt2, "/another", 1, "none, got 1");
  check_json_refused(gpt2, "/pre_tokenizer/add_prefix_space", true, "false, got true");
  check_json_refused(gpt2, "/pre_tokenizer/use_regex", false, "true or null, got false");
  check_json_refused(gpt2, "/pre_tokenizer/type", "Whitespace", "\"ByteLevel\", got \"Whitespace\"");
  check_json_refused(gpt2, "/pre_tokenizer", nullptr, "an object, got null");
  check_json_refused(gpt2, "/post_processor/type", "BertProcessing", "got \"BertProcessing\"");
  check_json_refused(gpt2, "/decoder/type", "WordPiece", "\"ByteLevel\", got \"WordPiece\"");
  check_json_refused(gpt2, "/decoder", nullptr, "an object, got null");
  check_json_refused(gpt2, "/model/type", "Unigram", "\"BPE\" or null, got \"Unigram\"");
  check_json_refused(gpt2, "/model/dropout", 0.1, "null or 0, got 0.1");
  check_json_refused(gpt2, "/model/byte_fallback", true, "false or null, got true");
  check_json_refused(gpt2, "/model/end_of_word_suffix", "</w>", "got \"</w>\"");
  check_json_refused(gpt2, "/model/continuing_subword_prefix", "##", "got \"##\"");
  check_json_refused(gpt2, "/model/vocab", nullptr, "a vocabulary {\"token\": id, ...}, got null");
  check_json_refused(gpt2, "/model/vocab/ab", 7, ", an id already in use", "model.vocab");
  check_json_refused(gpt2, "/model/merges", "a b", "a list, got \"a b\"");
  check_json_refused(gpt2, "/model/merges/1", "a c", "got 'ac', which is not in the vocabulary");
  check_json_refused(gpt2, "/model/merges/1", json::array({"a"}), "two tokens, got [\"a\"]");
  check_json_refused(gpt2, "/model/merges/1", json::array({"a", 1}), "text, got 1", "model.merges[1][1]");
  check_json_refused(gpt2, "/model", 1, "an object, got 1");
  check_json_refused(gpt2, "/added_tokens/0/lstrip", true, "false or null, got true");
  check_json_refused(gpt2, "/added_tokens/0/single_word", true, "got true");
  check_json_refused(gpt2, "/added_tokens/0/content", 1, "text, got 1");
  check_json_refused(gpt2, "/added_tokens/0/content", "", "got an empty one", "model.vocab");
  check_json_refused(gpt2, "/added_tokens/0/id", 7, "one id for '<|endoftext|>', got 258 and 7", "model.vocab");
  check_json_refused(gpt2, "/added_tokens/1", added("<|endoftext|>", 258), "distinct tokens");
  check_json_refused(gpt2, "/added_tokens/1", added("<|x|>", 300), "got 300 for '<|x|>'", "model.vocab");
  check_json_refused(gpt2, "", json::array(), "an object, got []");
  check_json_refused(llama3, "/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\d+",
                     "the regular expression of GPT-2 or of Llama 3, got \"\\\\d+\"");
  check_json_refused(llama3, "/pre_tokenizer/pretokenizers/0/behavior", "Removed", "\"Isolated\", got \"Removed\"");
  check_json_refused(llama3, "/pre_tokenizer/pretokenizers/0/invert", true, "got true");
  check_json_refused(llama3, "/pre_tokenizer/pretokenizers/1/use_regex", true, "false, got true");
  check_json_refused(llama3, "/pre_tokenizer/pretokenizers/2", {{"type", "Digits"}},
                     "ByteLevel, optionally after Split or Digits", "pre_tokenizer");
  check_json_refused(llama3, "/post_processor/processors/1/single/2", {{"SpecialToken", {{"id", "<|begin|>"}}}},
                     "nothing after the text");
  check_json_refused(llama3, "/post_processor/processors/1/single/0/SpecialToken/id", "<|other|>",
                     "only tokens in added_tokens before a text", "post_processor");
  check_json_refused(llama3, "/post_processor/processors/2", llama3["post_processor"]["processors"][1],
                     "one TemplateProcessing");
  check_json_refused(llama3, "/post_processor/processors/1/single",
                     json::array({{{"SpecialToken", {{"id", "<|begin|>"}}}}}), "the text as a Sequence");
  check_json_refused(llama3, "/post_processor/processors/0/type", "RobertaProcessing", "got \"RobertaProcessing\"");
}

TEST_CASE("Unsupported settings in tokenizer_config.json are refused by name") {
  const TemporaryFolder folder;
  folder.write("vocab.json", small_vocabulary().dump());
  folder.write("merges.txt", kMerges);
  folder.write("tokenizer_config.json",
               R"({"add_prefix_space": false, "add_bos_token": false, "model_max_length": 8})");
  CHECK_NOTHROW(Tokenizer::read(folder / "."));
  folder.write("tokenizer_config.json", R"({"add_bos_token": true})");
  check_refused(folder, "tokenizer_config.json: add_bos_token", "false, got true");
  folder.write("tokenizer.json", small_tokenizer_json().dump());  // states its own post-processing
  CHECK_NOTHROW(Tokenizer::read(folder / "."));
  folder.write("tokenizer_config.json", R"({"add_prefix_space": true})");
  check_refused(folder, "tokenizer_config.json: add_prefix_space", "false, got true");
  folder.write("tokenizer_config.json", "[]");
  check_refused(folder, "tokenizer_config.json", "an object of settings, got []");
}

TEST_CASE("A failed save is reported and leaves the files unchanged") {
  const Tokenizer tokenizer = Tokenizer::read(kVocabulary);
  const TemporaryFolder folder;
  folder.write("file", "x");
  CHECK(message_of([&] {
          tokenizer.save(folder / "file");
        }).starts_with(folder.path("file") + ": cannot create the folder: "));
  CHECK(folder.read("file") == "x");
  fs::create_directories(folder / "taken/vocab.json/in it");
  CHECK(message_of([&] { tokenizer.save(folder / "taken"); }) ==
        "[save_text] expected the name of a file, got " + folder.path("taken/vocab.json"));
  CHECK(fs::is_directory(folder / "taken/vocab.json/in it"));
}
