/// Prints the results of the rows in docs/coming_from_pytorch.md for coming_from_pytorch.py: for each row its line
/// in the page, then a line for each result.
///
///     row 42
///     (2, 3) 1 -2 3 0.5 0 -1.5
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstdlib>
#include <iostream>
#include <string>
#include <type_traits>

// Writes to standard error, since rows may print.
inline void begin_row(int line) { std::cerr << "row " << line << '\n'; }

template <class X> void write_result(const X& x) {
  std::cerr.precision(9);
  if constexpr (requires { x.value().shape(); }) {
    write_result(x.value());
  } else if constexpr (requires { x.shape().size(); }) {
    std::cerr << tapegrad::to_string(x.shape());
    for (const auto number : x) std::cerr << ' ' << static_cast<double>(number);
    std::cerr << '\n';
  } else if constexpr (std::is_same_v<X, tapegrad::Shape>) {
    write_result(tapegrad::int_array(x));
  } else if constexpr (std::is_arithmetic_v<X>) {
    std::cerr << "() " << static_cast<double>(x) << '\n';
  } else if constexpr (std::is_same_v<X, std::string>) {
    std::cerr << '"' << x << "\"\n";
  }
}

/// Writes the value of an expression: a tensor, array, shape, number or text. Only evaluates a void one.
template <class F> void show(F expression) {
  if constexpr (std::is_void_v<decltype(expression())>)
    expression();
  else
    write_result(expression());
}

template <class Error, class F> void expect_throw(F row) {
  try {
    row();
  } catch (const Error&) {
    return;
  }
  std::cerr << "does not throw\n";
  std::exit(1);
}
