/// The tokenizer of examples/gpt2 as a filter, to compare with the definitions in reference_tokenizer.py.
///
///     gpt2_tokens cut gpt2|llama3 FILE...             the lengths of each text's pieces, one line per file
///     gpt2_tokens encode text|tokens FOLDER FILE...   its ids; <|endoftext|> is text or a token
///     gpt2_tokens train SIZE FOLDER FILE              learns a vocabulary of that size from the text
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../examples/gpt2/files.hpp"
#include "../../examples/gpt2/train_tokenizer.hpp"

namespace {

using Arguments = std::vector<std::string>;

void cut(const std::string& expression, const Arguments& files) {
  const PreTokenizer pre_tokenizer(expression == "gpt2" ? kGpt2Expression : kLlama3Expression);
  for (const std::string& file : files) {
    const std::string text = read_file(file);
    pre_tokenizer.cut(text, [](std::string_view piece) { std::cout << piece.size() << ' '; });
    std::cout << '\n';
  }
}

void encode(Special special, const std::string& folder, const Arguments& files) {
  const Tokenizer tokenizer = Tokenizer::read(folder);
  for (const std::string& file : files) {
    const std::string text = read_file(file);
    const auto ids = tokenizer.encode(text, special);
    if (tokenizer.decode(ids) != text) throw std::logic_error(file + ": its ids give back another text");
    for (const auto id : ids) std::cout << id << ' ';
    std::cout << '\n';
  }
}

}  // namespace

int main(int count, char** arguments) try {
  const Arguments given(arguments + 1, arguments + count);
  if (given.size() < 3) throw std::invalid_argument("expected cut, encode or train with what they take");
  const Arguments files(given.begin() + (given[0] == "cut" ? 2 : 3), given.end());
  if (given[0] == "cut")
    cut(given[1], files);
  else if (given[0] == "encode")
    encode(given[1] == "tokens" ? Special::as_tokens : Special::as_text, given[2], files);
  else
    train_tokenizer(read_file(files.at(0)), std::stoul(given[1])).save(given[2]);
} catch (const std::exception& error) {
  std::cerr << "gpt2_tokens: " << error.what() << '\n';
  return 1;
}
