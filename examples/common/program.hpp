/// What every program here does with its options and its errors.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace examples {

/// Reads the command line, then runs the program's body and gives back its exit status. --help prints the help and
/// gives 0. An error, of the command line or of the body, prints one line on standard error and gives 1.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

/// Checks for options: a whole number, or any number, within bounds; a text that is UTF-8 and not empty. The message
/// says what was expected.
CLI::Validator whole_number(std::size_t least, std::size_t most = std::numeric_limits<std::size_t>::max());
CLI::Validator number(double least, double most);
CLI::Validator some_text();

/// Adds an option whose value is one of some names, each standing for a value.
template <class T, class Value>
CLI::Option* add_choice(CLI::App& app, const std::string& option, Value& value,
                        const std::vector<std::pair<std::string, T>>& choices, const std::string& description) {
  std::string names;
  for (const auto& choice : choices) names += (names.empty() ? "" : "|") + choice.first;
  const auto choose = [=, &value](const std::string& given) {
    for (const auto& [name, meaning] : choices)
      if (given == name) return void(value = meaning);
    throw CLI::ValidationError(option, "expected " + names + ", given '" + given + "'");
  };
  return app.add_option_function<std::string>(option, choose, description)->type_name(names);
}

/// Refuse options with CLI::ValidationError: those of `others` that were given beside `option`, with the reason, and a
/// number of heads that does not divide the width.
void refuse_beside(const CLI::App& app, const std::string& option, const std::vector<std::string>& others,
                   const std::string& expected);
void check_heads(std::size_t heads, std::size_t width);

/// Throws std::runtime_error when no file can be made at that path, so that long work is not done in vain.
void require_writable(const std::filesystem::path& path);

}  // namespace examples
