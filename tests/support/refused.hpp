/// Checks for refused arguments.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

/// Expects an Exception. Returns its message.
template <class Exception = std::exception, class Call> std::string error_message(Call call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  FAIL_CHECK("expected an error");
  return "";
}

/// Expects std::invalid_argument, "[operation] expected ..." with the text in it.
template <class Call> void check_refused(const std::string& operation, const std::string& text, Call call) {
  CAPTURE(operation);
  CAPTURE(text);
  const std::string message = error_message<std::invalid_argument>(call);
  CAPTURE(message);
  CHECK(message.starts_with("[" + operation + "] expected "));
  CHECK(message.find(text) != std::string::npos);
}

/// Expects an Exception, "[operation] expected ..." with all these texts in it, nothing recorded on a tape and no
/// random number drawn.
template <class Exception = std::invalid_argument, class Call>
void check_refused_unchanged(const std::string& operation, const std::vector<std::string>& texts, Call call) {
  INFO(operation, ", ", texts.empty() ? std::string() : texts[0]);
  tapegrad::manual_seed(0);
  const tapegrad::Generator before = tapegrad::default_generator();
  const tapegrad::Tape tape;
  try {
    call();
    FAIL_CHECK("expected an error");
  } catch (const std::exception& error) {
    const std::string message = error.what();
    CAPTURE(message);
    CHECK(typeid(error) == typeid(Exception));
    CHECK(message.starts_with("[" + operation + "] expected "));
    for (const std::string& text : texts) {
      CAPTURE(text);
      CHECK(message.find(text) != std::string::npos);
    }
  }
  CHECK(tape.size() == 0);
  CHECK(tapegrad::default_generator() == before);
}
