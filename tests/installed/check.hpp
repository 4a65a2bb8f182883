/// Checks for these programs: the first failure prints its line and exits with status 1. The programs only use the
/// public interface, like user programs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <string>
#include <string_view>

/// The location of a check. Replaces std::source_location, which clang 14 rejects in g++'s library.
struct Place {
  const char* file;
  int line;
  static Place current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

[[noreturn]] inline void fail(const std::string& what, const Place& place) {
  std::cerr << place.file << ':' << place.line << ": " << what << std::endl;
  std::exit(1);
}

inline void check(bool holds, const Place& place = Place::current()) {
  if (!holds) fail("does not hold", place);
}

/// Expects the same shape, and elements equal up to the tolerance, relative to 1 or to the element.
template <class A, class B>
void check_close(const A& given, const B& expected, double tolerance = 1e-9, const Place& place = Place::current()) {
  if (!std::equal(given.shape().begin(), given.shape().end(), expected.shape().begin(), expected.shape().end()))
    fail("the shapes differ", place);
  auto e = expected.begin();
  for (const double g : given) {
    const double wanted = *e++;
    if (!(std::abs(g - wanted) <= tolerance * std::max(1.0, std::abs(wanted))))
      fail("is " + std::to_string(g) + ", expected " + std::to_string(wanted), place);
  }
}

/// Expects the statement to throw an Error with all these words in its message.
template <class Error, class Statement>
void check_error(Statement statement, std::initializer_list<std::string_view> words,
                 const Place& place = Place::current()) {
  try {
    statement();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    for (const std::string_view word : words)
      if (message.find(word) == std::string_view::npos)
        fail("the message lacks '" + std::string(word) + "': " + error.what(), place);
    return;
  }
  fail("nothing is thrown", place);
}
