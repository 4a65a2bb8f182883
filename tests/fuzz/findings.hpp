/// Reports findings and parses inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>

namespace fuzz {

/// Ends the program; libFuzzer saves the input.
[[noreturn]] inline void finding(const std::string& what) {
  std::cerr << "finding: " << what << std::endl;
  std::abort();
}

inline void expect(bool holds, const std::string& what) {
  if (!holds) finding(what);
}

inline void expect_one_line(std::string_view message) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  expect(!message.empty() && message.size() < 2000 && std::ranges::none_of(message, is_control),
         "expected a message of one line, got \"" + std::string(message) + '"');
}

/// True for exceptions in the project's documentation, but not for classes derived from them.
inline bool is_documented(const std::exception& error) {
  const std::type_info& type = typeid(error);
  return type == typeid(std::runtime_error) || type == typeid(std::invalid_argument) ||
         type == typeid(std::out_of_range) || type == typeid(std::logic_error);
}

inline std::string as_it_is(std::string_view message) { return std::string(message); }

/// The message of the exception thrown by the call, converted by `shown`; empty if none is thrown. Any other outcome is
/// a finding.
template <class Call> std::string refusal(Call call, std::string (*shown)(std::string_view) = as_it_is) {
  try {
    call();
    return "";
  } catch (const std::exception& error) {
    expect(is_documented(error), std::string("undocumented exception ") + typeid(error).name() + ": " + error.what());
    const std::string message = shown(error.what());
    expect_one_line(message);
    return message;
  }
}

/// Removes and returns the text before the first mark, or all of the input without one.
inline std::string_view take_until(std::string_view& input, char mark) {
  const std::string_view text = input.substr(0, input.find(mark));
  input.remove_prefix(std::min(text.size() + 1, input.size()));
  return text;
}

/// Removes and returns the first byte; 0 at the end.
inline std::uint8_t take_byte(std::string_view& input) {
  if (input.empty()) return 0;
  const auto byte = static_cast<std::uint8_t>(input.front());
  input.remove_prefix(1);
  return byte;
}

}  // namespace fuzz
