/// What every program here does with its options and its errors.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "printable.hpp"

namespace examples {

/// Reads the command line, then runs the program's body and gives back its exit status. --help prints the help and
/// gives 0. An error, of the command line, of the body or in writing to standard output, prints one line on standard
/// error and gives 1.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

/// Checks for options: a whole number, or any number, within bounds; a text that is UTF-8, and one that is not empty
/// besides; the path of a file, and a name that more than one file begins with, neither of them empty as a variable of
/// the shell may be that nobody set. The message says what was expected.
CLI::Validator whole_number(std::size_t least, std::size_t most = std::numeric_limits<std::size_t>::max());
CLI::Validator number(double least, double most);
CLI::Validator any_text();
CLI::Validator some_text();
CLI::Validator some_path();
CLI::Validator some_name();

/// Adds an option whose value is one of some names, each standing for a value, which is handed to `set`.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& option, const std::function<void(const T&)>& set,
                        const std::vector<std::pair<std::string, T>>& choices, const std::string& description) {
  std::string names;
  for (const auto& choice : choices) names += (names.empty() ? "" : "|") + choice.first;
  const auto choose = [=](const std::string& given) {
    for (const auto& [name, meaning] : choices)
      if (given == name) return set(meaning);
    throw CLI::ValidationError(option, "expected " + names + ", got " + in_quotes(given));
  };
  return app.add_option_function<std::string>(option, choose, description)->type_name(names);
}

/// The same, assigned to a value.
template <class T, class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& option, Value& value,
                        const std::vector<std::pair<std::string, T>>& choices, const std::string& description) {
  return add_choice<T>(app, option, std::function<void(const T&)>([&value](const T& chosen) { value = chosen; }),
                       choices, description);
}

/// Refuse options with CLI::ValidationError: those of `others` that were given beside `option`, with the reason, and a
/// number of heads that does not divide the width.
void refuse_beside(const CLI::App& app, const std::string& option, const std::vector<std::string>& others,
                   const std::string& expected);
void check_heads(std::size_t heads, std::size_t width);

/// For a program that is to leave files: when the reader of its output goes away, as `| head` does, it works on and its
/// files are written, and only then does it end with an error. Any other program ends at once, by SIGPIPE.
void outlive_reader();

/// Throws std::runtime_error when one of the outputs cannot be written, or is given twice, or is one of the inputs
/// under this or another name, so that no long work is done in vain and nothing is overwritten that is being read. So
/// it does for one of the folders that files will be written to, or be made, that is given twice, and for an output
/// that is one of them or that one of them lies in. Names that are empty are none.
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& folders = {});

}  // namespace examples
