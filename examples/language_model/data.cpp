#include "data.hpp"

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "../common/progress.hpp"
#include "../common/word_lists.hpp"

using examples::Ids, examples::Text, examples::with_commas;

namespace {

std::vector<Text> read_filled_lines(const std::string& path, examples::Encoding encoding) {
  std::vector<Text> lines = examples::read_lines(path, encoding);
  std::erase_if(lines, [](const Text& line) { return line.empty(); });
  return lines;
}

Corpus split_list(std::vector<Text> lines, const std::string& name) {
  if (lines.size() < 10)
    throw std::runtime_error(name + ": expected 10 lines or more, since every tenth is kept for the test, given " +
                             std::to_string(lines.size()));
  Corpus corpus{name, {}, {}};
  for (std::size_t n = 1; n <= lines.size(); ++n)
    (n % 10 == 0 ? corpus.test : corpus.train).push_back(std::move(lines[n - 1]));
  return corpus;
}

Corpus split_text(const std::vector<Text>& lines, const std::string& path) {
  Text text;
  for (const Text& line : lines) text += line + U'\n';
  if (text.size() < 20)
    throw std::runtime_error(path + ": expected 20 characters or more, since the last tenth is kept for the test, " +
                             "given " + std::to_string(text.size()));
  const std::size_t kept = text.size() / 10;
  return {path, {text.substr(0, text.size() - kept)}, {text.substr(text.size() - kept)}};
}

}  // namespace

Corpus read_corpus(const Options& options, Source source) {
  const auto& [option, name] =
      options.data.empty() ? std::pair("--language", options.language) : std::pair("--data", options.data);
  Corpus corpus;
  if (source == Source::text)
    corpus = split_text(examples::read_lines(name, options.encoding), name);
  else if (source == Source::lines)
    corpus = split_list(read_filled_lines(name, options.encoding), name);
  else
    corpus = split_list(examples::read_word_lists({name}, options.encoding, option).front().words, name);

  const auto amount = [&](const std::vector<Text>& texts) {
    if (source == Source::text) return with_commas(texts.front().size()) + " characters";
    return with_commas(texts.size()) + (source == Source::words ? " words" : " lines");
  };
  std::cout << name << ": ";
  if (options.load.empty()) std::cout << amount(corpus.train) << " to learn from, ";
  std::cout << amount(corpus.test) << " to test with\n";
  return corpus;
}

examples::Vocabulary make_vocabulary(const Corpus& corpus) {
  examples::Vocabulary vocabulary = examples::make_tokenizer(corpus.train, examples::Unit::characters, 0).vocabulary;
  if (vocabulary.tokens().empty())
    throw std::runtime_error(corpus.name + ": expected characters that come twice or more, given none");
  return vocabulary;
}

examples::Padded random_pieces(const Ids& text, std::size_t count, std::size_t length) {
  length = std::min(length, text.size());
  const tapegrad::Shape shape{count, length};
  examples::Padded pieces{tapegrad::IntArray(shape), tapegrad::BoolArray(shape, true), count * length};
  const auto starts = tapegrad::uniform<double>({count}, 0, static_cast<double>(text.size() - length + 1));
  for (std::size_t i = 0; i < count; ++i)
    std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(starts(i)), length, pieces.ids.data() + i * length);
  return pieces;
}

std::vector<Ids> cut(const std::vector<Ids>& texts, std::size_t length) {
  std::vector<Ids> pieces;
  for (const Ids& text : texts)
    for (auto begin = text.begin(); text.end() - begin > 1;) {
      const auto size = std::min(static_cast<std::ptrdiff_t>(length), text.end() - begin);
      pieces.emplace_back(begin, begin + size);
      begin += size - 1;
    }
  return pieces;
}
