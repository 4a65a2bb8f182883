/// Options of the command line whose defaults depend on other options.
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

/// The members of a struct of options that the user gave. What is good for the others is known once all are read.
template <class Options> class Given {
 public:
  /// Describes a member to the command line as the option of that name.
  template <class Value>
  CLI::Option* add(CLI::App& app, const std::string& option, Value Options::*member, const std::string& type,
                   const CLI::Validator& check, const std::string& description) {
    checks_.emplace_back(option, [=](const Options& kept) {
      return kept.*member == Options().*member ? std::string() : check(as_given(kept.*member));
    });
    return app.add_option_function<Value>(option, setter(option, member), description)->type_name(type)->check(check);
  }

  /// The same for one whose value is one of some names, each standing for a value.
  template <class Value>
  CLI::Option* add_choice(CLI::App& app, const std::string& option, Value Options::*member,
                          const std::vector<std::pair<std::string, Value>>& choices, const std::string& description) {
    return examples::add_choice<Value>(app, option, setter(option, member), choices, description);
  }

  /// The same for one that is true when the option is there.
  CLI::Option* add_flag(CLI::App& app, const std::string& option, bool Options::*member,
                        const std::string& description) {
    return app.add_flag_callback(
        option, [=, set = setter(option, member)] { set(true); }, description);
  }

  /// The defaults with what the user gave in their place.
  Options value_or(Options defaults) const {
    for (const auto& [option, set] : changes_) set(defaults);
    return defaults;
  }

  /// Throws std::runtime_error, naming the file that the options were kept in, for one that the command line would not
  /// have taken. A member at its default is one that was not given.
  void check(const std::string& file, const Options& kept) const {
    for (const auto& [option, error_in] : checks_)
      if (const std::string error = error_in(kept); !error.empty())
        throw std::runtime_error(printable(file) + ": " + option + ": " + error);
  }

  /// The names of the options.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [option, set] : changes_) all.push_back(option);
    return all;
  }

  /// The options that say something else than `options`.
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
  /// A value as the user would have written it.
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
  std::vector<std::pair<std::string, std::function<std::string(const Options&)>>> checks_;  // give what is wrong
};

}  // namespace examples
