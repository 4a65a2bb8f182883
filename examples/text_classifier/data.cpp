#include "data.hpp"

#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "../common/printable.hpp"
#include "../common/progress.hpp"
#include "../common/word_lists.hpp"

using examples::Text;
using examples::with_commas;

namespace {

/// True if item n, counted from 1, is test data.
bool held_out(std::size_t n) { return n % 10 == 0; }

Data sample_words(const Options& options) {
  auto lists = examples::read_word_lists(options.languages, options.encoding);
  const std::size_t shared = examples::remove_shared_words(lists);

  Data data;
  for (const auto& [language, words] : lists) {
    if (words.size() < options.words)
      throw std::runtime_error("--words: expected at most " + std::to_string(words.size()) +
                               ", the number of words found only in the list of " + language + ", got " +
                               std::to_string(options.words));
    const tapegrad::IntArray order = tapegrad::random_permutation(words.size());
    for (std::size_t n = 1; n <= options.words; ++n)
      (held_out(n) ? data.test : data.train).push_back({language, words[static_cast<std::size_t>(order(n - 1))], ""});
  }
  std::cout << "Lowercase words; " << with_commas(shared) << " found in several lists were dropped.\n"
            << with_commas(options.words) << " words each of:";
  for (const auto& list : lists) std::cout << ' ' << list.language;
  std::cout << '\n';
  return data;
}

/// Reads lines of a label, a space and a text; element n - 1 is line n. Blank lines give empty elements.
std::vector<Example> read_labelled_lines(const std::string& path, examples::Encoding encoding) {
  const auto is_space = [](char32_t c) { return c == U' ' || c == U'\t'; };
  std::vector<Example> examples;
  for (const Text& line : examples::read_lines(path, encoding)) {
    const std::string place = path + ':' + std::to_string(examples.size() + 1);
    const auto label_end = std::find_if(line.begin(), line.end(), is_space);
    const auto text = std::find_if_not(label_end, line.end(), is_space);
    const auto text_end = std::find_if_not(line.rbegin(), line.rend(), is_space).base();
    if (label_end == line.begin() && text != line.end())
      throw std::runtime_error(place + ": expected a label, a space and a text, got " +
                               examples::in_quotes(examples::encode(line)));
    examples.push_back({examples::encode({line.begin(), label_end}),
                        text == line.end() ? Text() : examples::to_lower({text, text_end}), place});
  }
  return examples;
}

void remove_blank(std::vector<Example>& examples, const std::string& path) {
  std::erase_if(examples, [](const Example& example) { return example.label.empty(); });
  if (examples.empty()) throw std::runtime_error(path + ": expected lines of a label, a space and a text, got none");
}

Data read_files(const Options& options) {
  Data data;
  if (options.data.empty()) {
    if (!options.train.empty()) {
      data.train = read_labelled_lines(options.train, options.encoding);
      remove_blank(data.train, options.train);
    }
    data.test = read_labelled_lines(options.test, options.encoding);
    remove_blank(data.test, options.test);
    return data;
  }
  std::vector<Example> lines = read_labelled_lines(options.data, options.encoding);
  if (lines.size() < 10)
    throw std::runtime_error(options.data +
                             ": expected at least 10 lines, since every tenth is held out for testing, got " +
                             std::to_string(lines.size()));
  for (std::size_t n = 1; n <= lines.size(); ++n)
    (held_out(n) ? data.test : data.train).push_back(std::move(lines[n - 1]));
  remove_blank(data.train, options.data);
  remove_blank(data.test, options.data);
  return data;
}

}  // namespace

Data read_data(const Options& options) {
  const bool own_files = !options.data.empty() || !options.test.empty();
  Data data = own_files ? read_files(options) : sample_words(options);
  if (options.folds > 0) {
    std::move(data.test.begin(), data.test.end(), std::back_inserter(data.train));
    std::cout << with_commas(data.train.size()) << " texts in " << with_commas(options.folds) << " folds\n";
    return {std::move(data.train), {}};
  }
  if (options.load.empty())
    std::cout << with_commas(data.train.size()) << " for training, ";
  else
    data.train.clear();
  std::cout << with_commas(data.test.size()) << " for testing\n";
  return data;
}

std::vector<std::string> labels_of(const std::vector<Example>& examples) {
  std::set<std::string> labels;
  for (const Example& example : examples) labels.insert(example.label);
  if (labels.size() < 2)
    throw std::runtime_error(examples.front().place + ": expected at least two labels in the file, got " +
                             examples::in_quotes(examples.front().label) + " only");
  return {labels.begin(), labels.end()};
}

std::vector<std::int64_t> label_ids(const std::vector<Example>& examples, const std::vector<std::string>& labels) {
  std::unordered_map<std::string, std::int64_t> numbers;
  for (const std::string& label : labels) numbers.emplace(label, numbers.size());
  std::vector<std::int64_t> ids;
  for (const Example& example : examples) {
    const auto found = numbers.find(example.label);
    if (found == numbers.end())
      throw std::runtime_error(example.place + ": expected a label of the model (" + examples::listed(labels) +
                               "), got " + examples::in_quotes(example.label));
    ids.push_back(found->second);
  }
  return ids;
}
