/// What counts as a finding, and taking inputs apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>

namespace fuzz {

/// Ends the program: libFuzzer keeps the input.
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

/// Whether it is one of the exceptions that the project documents, and not one that is derived from them.
inline bool is_documented(const std::exception& error) {
  const std::type_info& type = typeid(error);
  return type == typeid(std::runtime_error) || type == typeid(std::invalid_argument) ||
         type == typeid(std::out_of_range) || type == typeid(std::logic_error);
}

inline std::string as_it_is(std::string_view message) { return std::string(message); }

/// The message with which the call is refused, as `shown` shows it, empty when it is not. Any other outcome is a
/// finding.
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

/// Takes the text before the mark off the input, all of it where there is no mark.
inline std::string_view take_until(std::string_view& input, char mark) {
  const std::string_view text = input.substr(0, input.find(mark));
  input.remove_prefix(std::min(text.size() + 1, input.size()));
  return text;
}

/// Takes a byte off the input; 0 at its end.
inline std::uint8_t take_byte(std::string_view& input) {
  if (input.empty()) return 0;
  const auto byte = static_cast<std::uint8_t>(input.front());
  input.remove_prefix(1);
  return byte;
}

}  // namespace fuzz
