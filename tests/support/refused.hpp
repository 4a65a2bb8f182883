/// Checks for refused arguments.
#pragma once

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

/// Expects std::invalid_argument, "[operation] expected ..." with the text in it.
template <class Call> void check_refused(const std::string& operation, const std::string& text, Call call) {
  CAPTURE(operation);
  CAPTURE(text);
  try {
    call();
    FAIL_CHECK("expected an error");
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    CAPTURE(message);
    CHECK(message.starts_with("[" + operation + "] expected "));
    CHECK(message.find(text) != std::string::npos);
  }
}
