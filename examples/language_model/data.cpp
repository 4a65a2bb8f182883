#include "data.hpp"

#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "../common/printable.hpp"
#include "../common/progress.hpp"
#include "../common/text.hpp"
#include "../common/word_lists.hpp"

using examples::Text, examples::with_commas;

namespace {

std::vector<std::string> to_utf8(const std::vector<Text>& texts) {
  std::vector<std::string> encoded;
  encoded.reserve(texts.size());
  for (const Text& text : texts)
    if (!text.empty()) encoded.push_back(examples::encode(text));
  return encoded;
}

Corpus split_list(std::vector<std::string> lines, const std::string& name) {
  if (lines.size() < 10)
    throw std::runtime_error(name + ": expected at least 10 lines, since every tenth is held out for testing, got " +
                             std::to_string(lines.size()));
  Corpus corpus{name, {}, {}};
  for (std::size_t n = 1; n <= lines.size(); ++n)
    (n % 10 == 0 ? corpus.test : corpus.train).push_back(std::move(lines[n - 1]));
  return corpus;
}

Corpus split_text(std::string text, const std::string& path) {
  const std::size_t characters = examples::character_count(text);
  if (characters < 20)
    throw std::runtime_error(path +
                             ": expected at least 20 characters, since the last tenth is held out for testing, got " +
                             std::to_string(characters));
  std::string_view rest = text;
  for (std::size_t i = characters / 10; i < characters; ++i) examples::take_character(rest);
  std::string test(rest);
  text.resize(text.size() - rest.size());
  return {path, {std::move(text)}, {std::move(test)}};
}

}  // namespace

Corpus read_corpus(const LanguageModelOptions& options, Source source) {
  const auto& [option, name] =
      options.run.data.empty() ? std::pair("--language", options.run.language) : std::pair("--data", options.run.data);
  Corpus corpus;
  if (source == Source::text)
    corpus = split_text(examples::read_text(name, options.run.encoding), name);
  else if (source == Source::lines)
    corpus = split_list(to_utf8(examples::read_lines(name, options.run.encoding)), name);
  else
    corpus = split_list(to_utf8(examples::read_word_lists({name}, options.run.encoding, option).front().words), name);

  const auto amount = [&](const std::vector<std::string>& texts) {
    if (source == Source::text) return with_commas(examples::character_count(texts.front())) + " characters";
    return with_commas(texts.size()) + (source == Source::words ? " words" : " lines");
  };
  std::cout << examples::printable(name) << ": ";
  if (options.load.empty()) std::cout << amount(corpus.train) << " for training, ";
  std::cout << amount(corpus.test) << " for testing\n";
  return corpus;
}

std::string fingerprint(const Corpus& corpus) {
  examples::Fingerprint all;
  for (const auto* texts : {&corpus.train, &corpus.test})
    for (const std::string& text : *texts) {
      all.add(text);
      all.add("\n");
    }
  return all.text();
}

examples::Vocabulary make_vocabulary(const Corpus& corpus) {
  std::vector<std::uint8_t> seen(0x110000);  // per code point: 0, 1, or 2 for two and more occurrences
  for (std::string_view text : corpus.train)
    while (const auto c = examples::take_character(text)) seen[*c] = seen[*c] == 0 ? 1 : 2;

  std::vector<std::string> characters;
  for (char32_t c = 0; c < seen.size(); ++c)
    if (seen[c] == 2) characters.push_back(examples::encode(Text(1, c)));
  if (characters.empty())
    throw std::runtime_error(corpus.name + ": expected characters that occur at least twice, got none");
  return examples::Vocabulary(std::move(characters));
}
