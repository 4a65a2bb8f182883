/// Option and error handling common to all programs.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "printable.hpp"

namespace examples {

/// Parses the command line, then runs the program's body and returns its exit status. --help prints the help and
/// returns 0. An error in the command line, in the body or in writing to standard output prints one line on standard
/// error and returns 1.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

/// Option validators: a whole number or a number within bounds, UTF-8 text, nonempty UTF-8 text, a file's path, and a
/// common name for several files. Paths and names must not be empty, as from an unset shell variable. Messages name
/// the expected value.
CLI::Validator whole_number(std::size_t min, std::size_t max = std::numeric_limits<std::size_t>::max());
CLI::Validator number(double min, double max);
CLI::Validator any_text();
CLI::Validator some_text();
CLI::Validator some_path();
CLI::Validator some_name();

/// Adds an option with named choices. Calls `set` with the value of the chosen name.
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

/// Adds an option with named choices. Assigns the chosen value to `value`.
template <class T, class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& option, Value& value,
                        const std::vector<std::pair<std::string, T>>& choices, const std::string& description) {
  return add_choice<T>(app, option, std::function<void(const T&)>([&value](const T& chosen) { value = chosen; }),
                       choices, description);
}

/// Throw CLI::ValidationError: refuse_with if any of `others` is given together with `option`, with the reason
/// `expected`, and check_heads if the number of heads does not divide the width.
void refuse_with(const CLI::App& app, const std::string& option, const std::vector<std::string>& others,
                 const std::string& expected);
void check_heads(std::size_t heads, std::size_t width);

/// Checks output paths before long work. Throws std::runtime_error if an output cannot be written, is given twice, or
/// is an input under any name. `folders` are output folders, which need not exist: also throws if one is given twice,
/// or if an output is one of them or of their parents. Ignores empty names.
///
/// With outputs, the program also outlives the reader of its standard output: if it exits early, as in `| head`, the
/// program continues, writes its files, then ends with an error. Otherwise SIGPIPE ends it at once.
void prepare_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& folders = {});

}  // namespace examples
