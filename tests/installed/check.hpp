/// What these programs check with: the first check that fails prints its line and ends the program with 1. They use the
/// library as its users do, and nothing else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <string>
#include <string_view>

/// Where a check stands: std::source_location, which clang 14 does not take from g++'s library.
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

/// Both arrays have the same shape, and no element differs by more than the tolerance, relative to 1 or to itself.
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

/// The statement throws an Error whose message has all the words.
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
