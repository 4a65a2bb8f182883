/// Errors: `[operation] expected X, got Y`. For the library's own sources.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "../array.hpp"

namespace tapegrad::detail {

/// Writes a part of an error message: a value, or a function without arguments, called only in case of the error.
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
  text.imbue(std::locale::classic());
  text << '[' << operation << "] ";
  (write(text, parts), ...);
  return text.str();
}

template <class Exception, class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void fail(const char* operation, const Parts&... parts) {
  throw Exception(message(operation, parts...));
}

/// Wrong shapes, axes and options: std::invalid_argument.
template <class... Parts> void require(bool holds, const char* operation, const Parts&... parts) {
  if (!holds) [[unlikely]]
    fail<std::invalid_argument>(operation, parts...);
}

/// Wrong indices: std::out_of_range.
template <class... Parts> void require_in_range(bool holds, const char* operation, const Parts&... parts) {
  if (!holds) [[unlikely]]
    fail<std::out_of_range>(operation, parts...);
}

/// Wrong use of tapes and tensors: std::logic_error.
template <class... Parts> void require_usage(bool holds, const char* operation, const Parts&... parts) {
  if (!holds) [[unlikely]]
    fail<std::logic_error>(operation, parts...);
}

}  // namespace tapegrad::detail
