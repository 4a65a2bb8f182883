#include "pairs.hpp"

#include <filesystem>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "../common/printable.hpp"
#include "../common/progress.hpp"
#include "../common/text.hpp"

namespace pronounce {

using examples::Unit;

namespace {

constexpr const char* dictionary = "/usr/share/festival/dicts/cmu/cmudict-0.4.out";

[[noreturn]] void refuse_line(const std::string& file, std::size_t number, const std::string& expected,
                              std::string_view line) {
  throw std::runtime_error(examples::printable(file) + ": line " + std::to_string(number) + ": expected " + expected +
                           ", got " + examples::in_quotes(line));
}

/// A dictionary's line, ("abandon" nil (((ax) 0) ((b ae n) 1) ((d ax n) 0))): the word, its part of speech, and its
/// syllables with their stress. Vowels get the stress of their syllable: ax0 b ae1 n d ax0 n.
Pair read_entry(const std::string& file, std::size_t number, std::string_view line) {
  const auto refuse = [&] { refuse_line(file, number, "a word with its syllables and their stress", line); };
  const std::size_t begin = line.find('"') + 1, end = line.find('"', begin), syllables = line.find("((", end);
  if (begin == 0 || end == line.npos || syllables == line.npos) refuse();
  Pair pair{tokens_of(std::string(line.substr(begin, end - begin)), Unit::characters), {}};
  for (std::size_t at = line.find("((", syllables + 1); at != line.npos; at = line.find("((", at + 1)) {
    const std::size_t open = line.find_first_not_of('(', at), close = line.find(')', at);
    if (close == line.npos || close + 2 >= line.size()) refuse();
    const std::string stress(1, line[close + 2]);
    for (std::string phoneme : tokens_of(std::string(line.substr(open, close - open)), Unit::words)) {
      if (std::string_view("aeiou").find(phoneme[0]) != std::string_view::npos) phoneme += stress;
      pair.target.push_back(std::move(phoneme));
    }
  }
  if (pair.target.empty()) refuse();
  return pair;
}

Pair read_pair(const RunOptions& options, std::size_t number, const std::string& line) {
  const std::size_t tab = line.find('\t');
  if (tab == line.npos) refuse_line(options.data, number, "a source, a tab and a target", line);
  Pair pair{tokens_of(line.substr(0, tab), options.source), tokens_of(line.substr(tab + 1), options.target)};
  if (pair.source.empty() || pair.target.empty())
    refuse_line(options.data, number, "a source, a tab and a target", line);
  return pair;
}

std::vector<Pair> read_all(const RunOptions& options, const std::string& file) {
  std::vector<Pair> all;
  std::size_t number = 0;
  for (const examples::Text& text : examples::read_lines(file, options.encoding)) {
    ++number;
    const std::string line = examples::encode(text);
    if (line.empty() || (options.data.empty() && !line.starts_with('('))) continue;  // the dictionary's header
    all.push_back(options.data.empty() ? read_entry(file, number, line) : read_pair(options, number, line));
  }
  return all;
}

}  // namespace

std::vector<std::string> tokens_of(const std::string& text, Unit unit) {
  return examples::split(examples::decode(text), unit);
}

Pairs read_pairs(const RunOptions& options) {
  const std::string file = options.data.empty() ? dictionary : options.data;
  if (options.data.empty() && !std::filesystem::exists(file))
    throw std::runtime_error("expected the pronouncing dictionary " + file +
                             "; install Debian's package festlex-cmu, or pass other pairs: --data FILE");
  std::vector<Pair> all = read_all(options, file);
  std::map<std::vector<std::string>, std::size_t> numbers;  // of the sources, in the file's order
  for (const Pair& pair : all) numbers.emplace(pair.source, numbers.size());
  if (numbers.size() < 10)
    throw std::runtime_error(examples::printable(file) +
                             ": expected at least 10 sources, since every tenth is held out for testing, got " +
                             std::to_string(numbers.size()));
  Pairs pairs{file, {}, {}};
  for (Pair& pair : all) (numbers.at(pair.source) % 10 == 9 ? pairs.test : pairs.train).push_back(std::move(pair));
  std::cout << examples::printable(file) << ": " << examples::with_commas(pairs.train.size()) << " pairs for training, "
            << examples::with_commas(pairs.test.size()) << " for testing\n";
  return pairs;
}

std::string fingerprint(const Pairs& pairs) {
  examples::Fingerprint all;
  for (const auto* part : {&pairs.train, &pairs.test})
    for (const Pair& pair : *part)
      for (const auto* tokens : {&pair.source, &pair.target}) {
        for (const std::string& token : *tokens) {
          all.add(token);
          all.add(" ");
        }
        all.add("\n");
      }
  return all.text();
}

}  // namespace pronounce
