/// Options and output functions of the tutorial programs.
#pragma once

#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>

#include <cmath>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace examples {

/// Runs a program with the options --seed, --page and --help and returns its exit status. --help prints `description`.
/// --page FILE writes the steps added to the page by `body`, and leaves the printed output unchanged.
int run_tutorial(int argc, char** argv, const std::string& name, const std::string& description,
                 const tapegrad::PageOptions& page, const std::function<void(tapegrad::Page&)>& body);

/// Calls compute(), records it as a step of the page and returns its result.
template <class F> auto as_step(tapegrad::Page& page, tapegrad::PageStep step, const F& compute) {
  const tapegrad::Tape tape({.keep_values = true});
  page.add(tape, std::move(step));
  return compute();
}

/// Labels for an axis of the page: "token 0", "token 1".
std::vector<std::string> numbered(const std::string& word, std::size_t count);

/// Names a tensor for the page.
template <class T> tapegrad::Tensor<T> named(std::string name, tapegrad::Tensor<T> x) {
  x.set_name(std::move(name));
  return x;
}

// Text is wrapped at 100 columns.

/// Prints a section's underlined title and its introduction.
void section(const std::string& title, const std::string& about);

/// Prints a paragraph introducing the next output.
void say(const std::string& text);

/// Prints a remark on the numbers above.
void see(const std::string& text);

/// An array with its name.
struct Named {
  std::string name;
  tapegrad::Array<double> values;
  bool whole;  ///< true for integers and booleans, printed without decimals

  template <class E>
  Named(std::string n, const xt::xexpression<E>& x)
      : name(std::move(n)), values(x), whole(std::is_integral_v<typename E::value_type>) {}
  template <class T> Named(std::string n, const tapegrad::Tensor<T>& x) : Named(std::move(n), x.value()) {}
};

struct Style {
  int decimals = 4;
  std::vector<std::string> rows = {}, columns = {};  ///< labels, or none
};

/// Prints an array under its name and shape. With more than two axes, prints its matrices next to each other, each
/// under its leading indices.
void show(const Named& array, const Style& style = {});
template <class X> void show(const std::string& name, const X& x, const Style& style = {}) {
  show(Named(name, x), style);
}

/// Prints vectors and matrices next to each other, as many as fit on a line.
void show_together(const std::vector<Named>& arrays, const Style& style = {});

/// Rounds to one decimal, so printed values are exact and a calculator can reproduce the results.
template <class T> tapegrad::Array<T> in_tenths(tapegrad::Array<T> x) {
  for (T& number : x) number = std::round(number * 10) / 10;
  return x;
}

/// Normally distributed numbers, rounded to one decimal.
template <class T> tapegrad::Array<T> random_numbers(const tapegrad::Shape& shape) {
  return in_tenths(tapegrad::normal<T>(shape));
}

/// Rounds all parameters of a model to one decimal.
template <class Model> void round_parameters(Model& model) {
  for (const auto& parameter : tapegrad::parameters(model)) parameter->set_value(in_tenths(parameter->value()));
}

/// Prints the parameters of a rounded model, weights first.
template <class Model> void show_parameters(const Model& model) {
  std::vector<Named> weights, biases;
  for (const auto& [name, parameter] : tapegrad::named_parameters(model))
    (parameter->dimension() > 1 ? weights : biases).emplace_back(name, *parameter);
  show_together(weights, {.decimals = 1});
  show_together(biases, {.decimals = 1});
}

/// A table of results computed in two ways, expected to be equal: add(name, description of both ways, one, other).
using tapegrad::testing::Comparison;

/// Prints the table. Throws std::runtime_error if two results differ.
void finish(const Comparison& table);

}  // namespace examples
