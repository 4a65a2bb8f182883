/// Runs samples of the table of operations, and compares their results.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string>
#include <vector>

#include "table.hpp"

namespace operations {

template <class T> using Parameters = std::vector<tg::Parameter<T>>;

template <class T> Function<T> function_of(const Sample& sample) {
  if constexpr (std::same_as<T, float>)
    return sample.in_float;
  else
    return sample.in_double;
}

template <class T> Parameters<T> parameters_of(const Sample& sample) {
  Parameters<T> parameters;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) parameters.emplace_back(numbers<T>(sample.inputs[i], i));
  return parameters;
}

template <class T> Inputs<T> inputs_of(const Parameters<T>& x) { return Inputs<T>(x.begin(), x.end()); }

/// Seeds the generator, so that repeated calls give the same numbers with dropout.
template <class T> tg::Tensor<T> call(const Sample& sample, const Inputs<T>& inputs) {
  tg::manual_seed(0);
  return function_of<T>(sample)(inputs);
}

/// Calls and runs backward with random cotangents, numbered after the inputs.
template <class T> tg::Array<T> forward_and_backward(const Sample& sample, const Inputs<T>& inputs) {
  tg::Tape tape;
  const tg::Tensor<T> y = call(sample, inputs);
  if (y.requires_grad()) y.backward(numbers<T>(draw(y.shape()), sample.inputs.size()));
  return y.value();
}

template <class T> std::vector<tg::Array<T>> with_gradients(tg::Array<T> value, const Parameters<T>& x) {
  std::vector<tg::Array<T>> results{std::move(value)};
  for (const tg::Parameter<T>& parameter : x) results.push_back(parameter.grad());
  return results;
}

/// The value and the gradient of each input.
template <class T> std::vector<tg::Array<T>> results_of(const Sample& sample) {
  const Parameters<T> x = parameters_of<T>(sample);
  return with_gradients(forward_and_backward<T>(sample, inputs_of(x)), x);
}

inline std::string result_name(std::size_t i) {
  return i == 0 ? "value" : "gradient of input " + std::to_string(i - 1);
}

template <class T> double largest(const tg::Array<T>& x) {
  double result = 0;
  for (const double value : x) result = std::max(result, std::abs(value));
  return result;
}

template <class T> bool same_bits(const tg::Array<T>& a, const tg::Array<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](T x, T y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

/// The largest difference relative to the largest expected number, or to `otherwise` if all of these are 0.
template <class Actual, class Expected>
double relative_difference(const Actual& actual, const Expected& expected, double otherwise = 0) {
  double difference = 0;
  for (std::size_t i = 0; i < expected.size() && !std::isnan(difference); ++i) {
    const double d = std::abs(double(actual.data()[i]) - double(expected.data()[i]));
    if (!(d <= difference)) difference = d;
  }
  const double scale = largest(expected);
  return difference == 0 ? 0 : difference / (scale > 0 ? scale : otherwise);
}

template <class Actual, class Expected>
void check_results(const Actual& actual, const Expected& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(result_name(i));
    REQUIRE(tg::to_string(actual[i].shape()) == tg::to_string(expected[i].shape()));
    CHECK(relative_difference(actual[i], expected[i], largest(expected[0])) <= tolerance);
  }
}

/// Runs the check as a subcase for every sample, so a failure names the operation and the sample.
template <class Check> void for_each_sample(Check check) {
  for (const Sample& sample : table().samples) SUBCASE(sample.title().c_str()) {
      check(sample);
    }
}

}  // namespace operations
