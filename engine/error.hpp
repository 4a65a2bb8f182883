/// How errors are thrown: `[operation] what was expected, what was given`. For the library's own sources.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tapegrad::detail {

template <class... Parts> std::string message(const char* operation, const Parts&... parts) {
  std::ostringstream text;
  text << '[' << operation << "] ";
  (text << ... << parts);
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
