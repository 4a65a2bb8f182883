/// How errors are thrown: `[operation] what was expected, what was given`. For the library's own sources.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "../shape.hpp"

namespace tapegrad::detail {

/// A part of an error's text: shapes and tensors are written out only when the error is thrown, and so is what a
/// function without arguments returns.
template <class Part> void write(std::ostream& out, const Part& part) {
  if constexpr (std::is_invocable_v<const Part&>)
    write(out, part());
  else if constexpr (requires { described(part); })
    out << described(part);
  else if constexpr (std::is_same_v<Part, Shape> || std::is_same_v<Part, IntList>)
    out << to_string(part);
  else
    out << part;
}

template <class... Parts> std::string message(const char* operation, const Parts&... parts) {
  std::ostringstream text;
  text.imbue(std::locale::classic());  // whatever the program's global locale is
  text << '[' << operation << "] ";
  (write(text, parts), ...);
  return text.str();
}

template <class Exception, class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void fail(const char* operation, const Parts&... parts) {
  throw Exception(message(operation, parts...));
}

/// Shapes, axes and options that do not fit: std::invalid_argument.
template <class... Parts> void require(bool holds, const char* operation, const Parts&... parts) {
  if (!holds) [[unlikely]]
    fail<std::invalid_argument>(operation, parts...);
}

/// Indices outside their range: std::out_of_range.
template <class... Parts> void require_in_range(bool holds, const char* operation, const Parts&... parts) {
  if (!holds) [[unlikely]]
    fail<std::out_of_range>(operation, parts...);
}

/// Tapes and tensors used in a way they cannot be: std::logic_error.
template <class... Parts> void require_usage(bool holds, const char* operation, const Parts&... parts) {
  if (!holds) [[unlikely]]
    fail<std::logic_error>(operation, parts...);
}

}  // namespace tapegrad::detail
