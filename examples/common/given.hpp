/// Command-line options with defaults that depend on other options.
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "printable.hpp"
#include "program.hpp"

namespace examples {

/// Records the members of an options struct set by the user. The others' defaults are known only after parsing.
template <class Options> class Given {
 public:
  /// Adds an option for a member.
  template <class Value>
  CLI::Option* add(CLI::App& app, const std::string& option, Value Options::*member, const std::string& type,
                   const CLI::Validator& check, const std::string& description) {
    checks_.emplace_back(option, [=](const Options& saved) {
      return saved.*member == Options().*member ? std::string() : check(as_given(saved.*member));
    });
    return app.add_option_function<Value>(option, setter(option, member), description)->type_name(type)->check(check);
  }

  /// Adds an option with named choices for a member.
  template <class Value>
  CLI::Option* add_choice(CLI::App& app, const std::string& option, Value Options::*member,
                          const std::vector<std::pair<std::string, Value>>& choices, const std::string& description) {
    return examples::add_choice<Value>(app, option, setter(option, member), choices, description);
  }

  /// Adds a flag for a member.
  CLI::Option* add_flag(CLI::App& app, const std::string& option, bool Options::*member,
                        const std::string& description) {
    return app.add_flag_callback(
        option, [=, set = setter(option, member)] { set(true); }, description);
  }

  /// The defaults, overridden by the given options.
  Options value_or(Options defaults) const {
    for (const auto& [option, set] : changes_) set(defaults);
    return defaults;
  }

  /// Checks options loaded from a file. Throws std::runtime_error, naming the file, if the command line would reject
  /// one. Skips members equal to their default, which count as not given.
  void check(const std::string& file, const Options& saved) const {
    for (const auto& [option, error_in] : checks_)
      if (const std::string error = error_in(saved); !error.empty())
        throw std::runtime_error(printable(file) + ": " + option + ": " + error);
  }

  /// The names of the given options.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [option, set] : changes_) all.push_back(option);
    return all;
  }

  /// The given options with values other than in `options`.
  std::vector<std::string> contradicting(const Options& options) const {
    std::vector<std::string> found;
    for (const auto& [option, set] : changes_) {
      Options changed = options;
      set(changed);
      if (!(changed == options)) found.push_back(option);
    }
    return found;
  }

 private:
  /// A value as text on the command line.
  static std::string as_given(const std::string& text) { return text; }
  template <class Number> static std::string as_given(Number number) {
    char text[32];
    return {text, std::to_chars(text, std::end(text), number).ptr};
  }

  template <class Value> std::function<void(const Value&)> setter(const std::string& option, Value Options::*member) {
    return [=, this](const Value& value) {
      changes_.emplace_back(option, [=](Options& options) { options.*member = value; });
    };
  }

  std::vector<std::pair<std::string, std::function<void(Options&)>>> changes_;
  std::vector<std::pair<std::string, std::function<std::string(const Options&)>>> checks_;  // return the error or ""
};

}  // namespace examples
