// GPT-2's tokenizer: pieces, ids and bytes compared with the definition of byte-pair encoding, on texts of all kinds.
#include <doctest/doctest.h>
#include <paths.hpp>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../../../examples/gpt2/byte_level.hpp"
#include "../../../examples/gpt2/files.hpp"
#include "../../../examples/gpt2/json_file.hpp"
#include "../../../examples/gpt2/tokenizer.hpp"
#include "../../../examples/gpt2/tokenizer_files.hpp"
#include "../../../examples/gpt2/train_tokenizer.hpp"
#include "../../../examples/gpt2/utf8_stream.hpp"
#include "sanitized.hpp"
#include "temporary_folder.hpp"
#include "text.hpp"

using namespace std::string_literals;

namespace {

using Ids = std::vector<std::int64_t>;
using Strings = std::vector<std::string>;

const std::filesystem::path kFolder = std::filesystem::path(TAPEGRAD_SOURCES) / "tests/gpt2";

const Tokenizer& tokenizer() {
  static const Tokenizer of_tests = Tokenizer::read(kFolder / "vocabulary");
  return of_tests;
}

Strings pieces_of(std::string_view text, const std::string& expression = kGpt2Expression) {
  Strings pieces;
  PreTokenizer(expression).cut(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

// A word's tokens by definition: each step merges all occurrences of the pair of lowest rank, from left to right.
std::vector<TokenId> merged_plainly(std::vector<TokenId> tokens, const std::vector<Merge>& merges) {
  for (;;) {
    const Merge* lowest = nullptr;
    for (const Merge& merge : merges)
      for (std::size_t i = 0; i + 1 < tokens.size() && lowest == nullptr; ++i)
        if (tokens[i] == merge.left && tokens[i + 1] == merge.right) lowest = &merge;
    if (lowest == nullptr) return tokens;
    std::vector<TokenId> next;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool here = i + 1 < tokens.size() && tokens[i] == lowest->left && tokens[i + 1] == lowest->right;
      next.push_back(here ? lowest->merged : tokens[i]);
      i += here;
    }
    tokens = next;
  }
}

Ids encoded_plainly(std::string_view text) {
  static const TokenizerParts parts = read_tokenizer_parts(kFolder / "vocabulary");
  Ids ids;
  for (const std::string& piece : pieces_of(text)) {
    std::vector<TokenId> tokens;
    for (const char byte : piece) tokens.push_back(parts.bytes[static_cast<unsigned char>(byte)]);
    for (const TokenId token : merged_plainly(tokens, parts.merges)) ids.push_back(token);
  }
  return ids;
}

// Random concatenations of text fragments.
std::string random_text(std::mt19937& generator) {
  static const Strings parts = [] {
    Strings all{" ", "  ", "\n", "\t", "\r\n", "\0"s, " the", " rule", "\u3000"};
    std::istringstream words(
        "the 's 'll ' 1 100 ½ é e\u0301 Größe Ελλάδα 文字 언어 👩‍👩‍👧 ☺\ufe0f ... \x1b "
        "\u0085 \xff \xc3 \xe2\x82 \xf0\x9f\x99 \x80 \xed\xa0\x80 <|endoftext|> <| aaaa Ġ");
    for (std::string word; words >> word;) all.push_back(word);
    return all;
  }();
  std::string text;
  for (auto count = generator() % 40; count > 0; --count) text += parts[generator() % parts.size()];
  return text;
}

}  // namespace

TEST_CASE("GPT-2's expression splits words with the space before them, numbers, symbols and spaces") {
  CHECK(pieces_of("Hello, world! It's 2024.") == Strings{"Hello", ",", " world", "!", " It", "'s", " 2024", "."});
  CHECK(pieces_of("I'm you're we've he'd they'll don't 'tis IT'S") == Strings{"I", "'m", " you", "'re", " we", "'ve",
                                                                              " he", "'d", " they", "'ll", " don", "'t",
                                                                              " '", "tis", " IT", "'", "S"});
  CHECK(pieces_of("a  b   c \n\n d\t\te  ") ==
        Strings{"a", " ", " b", "  ", " c", " \n\n", " d", "\t", "\t", "e", "  "});
  CHECK(pieces_of("x²½Ⅻ 10") == Strings{"x", "²½Ⅻ", " 10"});
  CHECK(pieces_of("e\u0301 नमस्ते") == Strings{"e", "\u0301", " नमस", "\u094d", "त", "\u0947"});  // marks split off
  CHECK(pieces_of("日本語、한국어 Ελλάδα") == Strings{"日本語", "、", "한국어", " Ελλάδα"});
  CHECK(pieces_of("👩‍👩‍👧 ☺\ufe0f") == Strings{"👩‍👩‍👧", " ☺\ufe0f"});
  CHECK(pieces_of("").empty());
}

TEST_CASE("Llama 3's expression splits numbers into groups of three, and contractions in any case") {
  const auto pieces = [](std::string_view text) { return pieces_of(text, kLlama3Expression); };
  CHECK(pieces("IT'S 1234567") == Strings{"IT", "'S", " ", "123", "456", "7"});
  CHECK(pieces("(word) a\n\n  b!\n c  ") == Strings{"(word", ")", " a", "\n\n", " ", " b", "!\n", " c", "  "});
  CHECK(pieces("\tx\u0085\u0085y") == Strings{"\tx", "\u0085", "\u0085y"});
  CHECK_THROWS_WITH_AS(pieces_of("", "\\w+"), "expected the regular expression of GPT-2, Llama 3 or SmolLM, got '\\w+'",
                       std::invalid_argument);
}

TEST_CASE("SmolLM's tokenizers split digits from each other and from preceding spaces") {
  const auto pieces = [](std::string_view text) { return pieces_of(text, kDigitsExpression); };
  CHECK(pieces("it's 12,  3 a1b\n4 ") ==
        Strings{"it", "'s", " ", "1", "2", ",", "  ", "3", " a", "1", "b", "\n", "4", " "});
  CHECK(pieces("½  Ⅻ  x") == Strings{"½", "  ", "Ⅻ", " ", " x"});
  // In two steps: each numeral is a piece, and GPT-2's expression cuts the text between.
  for (const std::string text : {"a  12 b", "  3\u3000\u30004  ", "5'6's7!8 !9", " \n 0\t", "12",
                                 ("\xff"
                                  "1\xff 2 \xff")}) {
    Strings in_steps;
    std::string between;
    const auto cut = [&] {
      for (const std::string& piece : pieces_of(between)) in_steps.push_back(piece);
      between.clear();
    };
    for (const char c : text)
      if (c >= '0' && c <= '9')
        cut(), in_steps.emplace_back(1, c);
      else
        between += c;
    cut();
    CHECK(pieces(text) == in_steps);
  }
}

TEST_CASE("Each byte is spelled as the character in GPT-2's files") {
  CHECK(spell(" a\n\t~\x7f\xa0\xad\xae\xff\0"s) == "ĠaĊĉ~ġłŃ®ÿĀ");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(unspell(spell(all)) == all);
  for (const char* wrong : {" ", "\n", "文", "\xff", "\u0144", "\u00ad"}) CHECK(!unspell(wrong));
}

TEST_CASE("Every text round-trips through its ids, which match the definition") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  Strings texts{"", " ", "\n\n \n", "\x1b[31m\x7f", "\xff\xfe", "\xe2\x82", "\xc3\xc3\xa9"};
  for (const char* text :
       {"L'été où ça", "Η γλώσσα", "语言和文字", "언어와 문자", "👩‍👩‍👧🇨🇭👍🏽"})
    texts.push_back(text);
  for (const std::string& part : {" "s, "\t"s, "a"s, "ab"s, "the"s}) texts.push_back(repeated(part, 333 / part.size()));
  for (const std::string& text : {all, all + all, read_file(kFolder / "text.txt")}) texts.push_back(text);
  std::mt19937 generator(7);
  for (int i = 0; i < (kSanitized ? 100 : 1000); ++i) texts.push_back(random_text(generator));
  for (const std::string& text : texts) {
    CAPTURE(text);
    const Ids ids = tokenizer().encode(text);
    CHECK(tokenizer().decode(ids) == text);
    CHECK(ids == encoded_plainly(text));
  }
}

TEST_CASE("A word is merged by rank, at all positions at once, also if the result merges with a lower rank") {
  std::mt19937 generator(3);
  for (int tries = 0; tries < 300; ++tries) {
    // Random merges of a few tokens. Each pair is distinct; several merges may yield the same token.
    std::vector<Merge> merges;
    for (TokenId left = 0; left < 6; ++left)
      for (TokenId right = 0; right < 6; ++right)
        if (generator() % 3 == 0) merges.push_back({left, right, static_cast<TokenId>(generator() % 3 + 3)});
    std::ranges::shuffle(merges, generator);
    // As in real texts, a merged token is larger than its parts.
    std::erase_if(merges, [](const Merge& merge) { return merge.merged <= std::max(merge.left, merge.right); });
    std::vector<TokenId> tokens(generator() % 30);
    for (TokenId& token : tokens) token = static_cast<TokenId>(generator() % 4);
    std::vector<TokenId> given = tokens;
    Merges(merges).apply(given);
    CHECK(given == merged_plainly(tokens, merges));
  }
  std::vector<TokenId> tokens{0, 1, 0, 1};
  Merges({{2, 0, 3}, {0, 1, 2}}).apply(tokens);
  CHECK(tokens == std::vector<TokenId>{2, 2});
}

TEST_CASE("<|endoftext|> in a text is a token if requested, and otherwise text") {
  REQUIRE(tokenizer().size() == 384);
  REQUIRE(tokenizer().end_of_text() == 383);
  CHECK(tokenizer().bytes(383) == "<|endoftext|>");
  const std::string text = "one  <|endoftext|><|endoftext|> two <|endoftext";
  const Ids ids = tokenizer().encode(text, Special::as_tokens);
  Ids expected = tokenizer().encode("one  ");
  expected.insert(expected.end(), {383, 383});
  for (const auto id : tokenizer().encode(" two <|endoftext")) expected.push_back(id);
  CHECK(ids == expected);
  CHECK(tokenizer().decode(ids) == text);
  CHECK(std::ranges::count(tokenizer().encode(text), 383) == 0);
  CHECK(tokenizer().decode(tokenizer().encode(text)) == text);
}

TEST_CASE("An id outside the vocabulary is refused with its number") {
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{384}, std::numeric_limits<std::int64_t>::max()}) {
    const std::string message = "tokenizer: expected an id from 0 to 383, got " + std::to_string(id);
    CHECK_THROWS_WITH_AS(tokenizer().bytes(id), message.c_str(), std::out_of_range);
    CHECK_THROWS_WITH_AS(tokenizer().decode(Ids{0, id}), message.c_str(), std::out_of_range);
  }
}

TEST_CASE("Threads can share a tokenizer") {
  const std::string text = read_file(kFolder / "text.txt");
  const Ids expected = tokenizer().encode(text);
  std::vector<Ids> given(4);
  std::vector<std::thread> threads;
  for (Ids& ids : given) threads.emplace_back([&] { ids = tokenizer().encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : given) CHECK(ids == expected);
}

TEST_CASE("The time is linear in the length of the text, also within one word") {
  const auto seconds = [](const std::string& text) {
    double least = std::numeric_limits<double>::infinity();
    for (int tries = 0; tries < 3; ++tries) {
      const std::clock_t start = std::clock();  // CPU time: other programs run in parallel
      tokenizer().encode(text);
      least = std::min(least, double(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return least;
  };
  for (const std::string& part : {"a"s, " "s, "the"s, " \n"s, "'"s, "<|"s, "文"s, "\xff"s}) {
    CAPTURE(part);
    const double small = seconds(repeated(part, 1 << 12)), large = seconds(repeated(part, 1 << 16));
    CHECK(large < 16 * 5 * small + 0.01);  // quadratic growth: 256
  }
}

TEST_CASE("Text is printed in complete characters, with U+FFFD for invalid bytes") {
  const auto streamed = [](const Strings& parts) {
    Utf8Stream stream;
    Strings out;
    for (const std::string& part : parts) out.push_back(stream.put(part));
    out.push_back(stream.end());
    return out;
  };
  CHECK(streamed({"a", "\xc3", "\xa9"}) == Strings{"a", "", "é", ""});
  CHECK(streamed({"\xf0", "\x9f\x99", "\x82."}) == Strings{"", "", "🙂.", ""});
  CHECK(streamed({"a\xf0\x9f"}) == Strings{"a", "\ufffd"});
  CHECK(streamed({"\xff", "a\x80z"}) == Strings{"\ufffd", "a\ufffdz", ""});
  CHECK(streamed({"\xe2", "\x82", "a"}) == Strings{"", "", "\ufffda", ""});  // one incomplete sequence gives one
  CHECK(streamed({"\xe2", "\xe2\x82\xac"}) == Strings{"", "\ufffd€", ""});
  CHECK(streamed({"\xed", "\xa0", "\x80"}) == Strings{"", "\ufffd\ufffd", "\ufffd", ""});  // a surrogate
  CHECK(streamed({"\xf4", "\x90"}) == Strings{"", "\ufffd\ufffd", ""});                    // beyond U+10FFFF
  CHECK(streamed({"\xc0\x80", "\xf5"}) == Strings{"\ufffd\ufffd", "\ufffd", ""});
  CHECK(streamed({}) == Strings{""});

  Utf8Stream stream;
  CHECK(stream.put("\xe2\x82").empty());
  CHECK(stream.end() == "\ufffd");
  CHECK(stream.put("\xac") == "\ufffd");  // starts over
}

TEST_CASE("The vocabulary of the tests is the one trained on their text") {
  const TemporaryFolder folder;
  std::vector<std::size_t> reported;
  const Tokenizer trained =
      train_tokenizer(read_file(kFolder / "text.txt"), 384, [&](std::size_t tokens) { reported.push_back(tokens); });
  trained.save(folder / "new" / "er");
  for (const char* file : {"vocab.json", "merges.txt"})
    CHECK(read_file(folder / "new/er" / file) == read_file(kFolder / "vocabulary" / file));
  CHECK(reported.size() == 127);
  CHECK(reported.back() == 383);
  const Tokenizer read = Tokenizer::read(folder / "new/er");
  CHECK(read.encode("the tape and the rule") == trained.encode("the tape and the rule"));
  read.save(folder / "new");
  CHECK(read_file(folder / "new/vocab.json") == read_file(kFolder / "vocabulary/vocab.json"));
}

TEST_CASE("Pairs are merged by frequency; of equally frequent ones, the smaller ids first") {
  const auto merges = [](const std::string& text, std::size_t count) {
    const TemporaryFolder folder;
    train_tokenizer(text, 257 + count).save(folder / "made");
    const std::string file = read_file(folder / "made/merges.txt");
    return file.substr(file.find('\n') + 1);
  };
  CHECK(merges("ab ab ab cd", 2) == "a b\nĠ ab\n");
  CHECK(merges("cd.ab.cd.ab", 2) == "a b\nc d\n");
  CHECK(merges("cb.ca.cb.ca", 2) == "c a\nc b\n");
  CHECK(merges("aaaa.aaa.aaa", 2) == "a a\naa a\n");                         // aa aa, aa a, aa a
  CHECK(merges("xyz<|endoftext|>xyz<|endoftext|>xyz", 2) == "x y\nxy z\n");  // no merge across the separator
}

TEST_CASE("A vocabulary larger than the text allows is refused") {
  CHECK(train_tokenizer("", 257).size() == 257);
  CHECK_THROWS_WITH_AS(
      train_tokenizer("aa", 256),
      "train_tokenizer: expected a vocabulary of at least 257 tokens, the bytes and <|endoftext|>, got 256",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      train_tokenizer("ab ab", 1'000'000),
      "train_tokenizer: expected a vocabulary of at most 258, because after that no pair occurs twice in "
      "the text, got 1,000,000",
      std::invalid_argument);
  CHECK_THROWS_AS(train_tokenizer("ab ab", 258, [](std::size_t) { throw std::domain_error("stop"); }),
                  std::domain_error);
}

// GPT-2's own files are not part of the project.
TEST_CASE("Texts have the same ids as in GPT-2" * doctest::skip(std::getenv("TAPEGRAD_GPT2") == nullptr)) {
  const char* folder = std::getenv("TAPEGRAD_GPT2");
  REQUIRE(folder != nullptr);
  const Tokenizer gpt2 = Tokenizer::read(folder);
  CHECK(gpt2.size() == 50257);
  CHECK(gpt2.end_of_text() == 50256);
  CHECK(gpt2.encode("Hello world") == Ids{15496, 995});
  CHECK(gpt2.encode("Hello, my dog is cute") == Ids{15496, 11, 616, 3290, 318, 13779});
  CHECK(gpt2.encode("The quick brown fox jumps over the lazy dog") ==
        Ids{464, 2068, 7586, 21831, 18045, 625, 262, 16931, 3290});
  CHECK(gpt2.encode("<|endoftext|>", Special::as_tokens) == Ids{50256});
  CHECK(gpt2.decode(Ids{15496, 995, 50256}) == "Hello world<|endoftext|>");
}
