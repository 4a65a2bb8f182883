/// Runs every check on every sample in the table of operations. fixtures/operations.json holds PyTorch's results for
/// the same samples, written by fixtures/make_operations.py.
#include <tapegrad/testing.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <paths.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../../operations/table.hpp"

namespace tg = tapegrad;
using namespace operations;

namespace {

template <class T> Function<T> function_of(const Sample& sample) {
  if constexpr (std::same_as<T, float>)
    return sample.in_float;
  else
    return sample.in_double;
}

template <class T> std::vector<tg::Parameter<T>> parameters_of(const Sample& sample) {
  std::vector<tg::Parameter<T>> parameters;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) parameters.emplace_back(numbers<T>(sample.inputs[i], i));
  return parameters;
}

// Seeds the generator, so that repeated calls give the same numbers with dropout.
template <class T> tg::Tensor<T> call(const Sample& sample, const Inputs<T>& inputs) {
  tg::manual_seed(0);
  return function_of<T>(sample)(inputs);
}

// Calls and runs backward with random cotangents, numbered after the inputs.
template <class T> tg::Array<T> forward_and_backward(const Sample& sample, const Inputs<T>& inputs) {
  tg::Tape tape;
  const tg::Tensor<T> y = call(sample, inputs);
  if (y.requires_grad()) y.backward(numbers<T>(draw(y.shape()), sample.inputs.size()));
  return y.value();
}

// The value and the gradient of each input.
template <class T> std::vector<tg::Array<T>> results_of(const Sample& sample) {
  const std::vector<tg::Parameter<T>> x = parameters_of<T>(sample);
  std::vector<tg::Array<T>> results{forward_and_backward<T>(sample, Inputs<T>(x.begin(), x.end()))};
  for (const tg::Parameter<T>& parameter : x) results.push_back(parameter.grad());
  return results;
}

std::string result_name(std::size_t i) { return i == 0 ? "value" : "gradient of input " + std::to_string(i - 1); }

template <class T> double largest(const tg::Array<T>& x) {
  double result = 0;
  for (const double value : x) result = std::max(result, std::abs(value));
  return result;
}

// The largest difference relative to the largest expected number, or to `otherwise` if all of these are 0.
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

// Runs the check as a subcase for every sample, so a failure names the operation and the sample.
template <class Check> void for_each_sample(Check check) {
  for (const Sample& sample : table().samples) SUBCASE(sample.title().c_str()) {
      check(sample);
    }
}

double step_of(const Sample& sample, double x) { return sample.step * std::max(1.0, std::abs(x)); }

// The Jacobian of each input, (outputs, elements of the input), with one backward pass per output.
std::vector<tg::Array<double>> swept_jacobians(const Sample& sample, std::vector<tg::Parameter<double>>& x) {
  tg::Tape tape;
  const tg::Tensor<double> y = call(sample, Inputs<double>(x.begin(), x.end()));
  std::vector<tg::Array<double>> jacobians;
  for (const auto& parameter : x) jacobians.emplace_back(tg::Shape{y.size(), parameter.size()}, 0.0);
  for (std::size_t row = 0; row < y.size() && y.requires_grad(); ++row) {
    tg::Array<double> seed(y.shape(), 0.0);
    seed.data()[row] = 1;
    y.backward(seed, tg::retain_graph);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const tg::Array<double>& gradient = x[i].grad();
      std::copy(gradient.begin(), gradient.end(), jacobians[i].data() + row * gradient.size());
      x[i].zero_grad();
    }
  }
  return jacobians;
}

// The Jacobian of input i from central differences.
tg::Array<double> differences(const Sample& sample, std::vector<tg::Parameter<double>>& x, std::size_t i) {
  const tg::Array<double> value = x[i].value();
  const auto output = [&](std::size_t column, double h) {
    tg::Array<double> moved = value;
    moved.data()[column] += h;
    x[i].set_value(std::move(moved));
    return call(sample, Inputs<double>(x.begin(), x.end())).value();
  };
  const std::size_t rows = output(0, 0).size();
  tg::Array<double> jacobian(tg::Shape{rows, value.size()});
  for (std::size_t column = 0; column < value.size(); ++column) {
    const double h = step_of(sample, value.data()[column]);
    const tg::Array<double> below = output(column, -h), above = output(column, h);
    for (std::size_t row = 0; row < rows; ++row)
      jacobian(row, column) = (above.data()[row] - below.data()[row]) / (2 * h);
  }
  x[i].set_value(value);
  return jacobian;
}

const nlohmann::json& fixtures() {
  static const nlohmann::json all =
      nlohmann::json::parse(std::ifstream(TAPEGRAD_SOURCES "/tests/fixtures/operations.json"));
  return all;
}

tg::Array<double> array_of(const nlohmann::json& fixture) {
  tg::Array<double> array(fixture.at(0).get<std::vector<std::size_t>>());
  const auto data = fixture.at(1).get<std::vector<double>>();
  REQUIRE(data.size() == array.size());
  std::copy(data.begin(), data.end(), array.begin());
  return array;
}

// How often each function is declared in engine/ops/ops.hpp: the names before the first parenthesis of all lines that
// are neither indented nor comments.
std::map<std::string, std::size_t> declared_operations() {
  std::map<std::string, std::size_t> declared;
  std::ifstream header(TAPEGRAD_SOURCES "/engine/ops/ops.hpp");
  for (std::string line; std::getline(header, line);) {
    const std::size_t end = line.find('(');
    if (end == std::string::npos || !std::isalpha(static_cast<unsigned char>(line[0]))) continue;
    ++declared[line.substr(line.rfind(' ', end) + 1, end - line.rfind(' ', end) - 1)];
  }
  return declared;
}

}  // namespace

TEST_CASE("Every operation of the public header has at least one sample per overload") {
  std::map<std::string, std::size_t> samples;
  for (const Sample& sample : table().samples) ++samples[sample.operation];
  const auto declared = declared_operations();
  CHECK(declared.size() > 50);
  for (const auto& operation : declared) {
    CAPTURE(operation.first);
    CHECK(samples[operation.first] >= operation.second);
  }
  for (const auto& operation : samples) {
    CAPTURE(operation.first);
    CHECK(declared.contains(operation.first));
  }
}

TEST_CASE("Sample names are unique, and samples and fixtures match one to one") {
  std::set<std::string> titles;
  for (const Sample& sample : table().samples) {
    CAPTURE(sample.title());
    CHECK(titles.insert(sample.title()).second);
    CHECK(fixtures().contains(sample.title()));
  }
  for (const auto& fixture : fixtures().items()) {
    CAPTURE(fixture.key());
    CHECK(titles.contains(fixture.key()));
  }
}

TEST_CASE("Values and gradients match PyTorch") {
  for_each_sample([](const Sample& sample) {
    std::vector<tg::Array<double>> expected;
    for (const auto& fixture : fixtures().at(sample.title())) expected.push_back(array_of(fixture));
    check_results(results_of<double>(sample), expected, 1e-11);
  });
}

TEST_CASE("Gradients agree with central differences") {
  for_each_sample([](const Sample& sample) {
    std::vector<tg::Parameter<double>> x = parameters_of<double>(sample);
    if (x.empty() || sample.step == no_differences) return;
    tg::NamedParameters<double> named;
    for (tg::Parameter<double>& parameter : x) named.emplace_back("input " + std::to_string(named.size()), parameter);
    const auto result = tg::testing::gradcheck([&] { return call(sample, Inputs<double>(x.begin(), x.end())); }, named,
                                               {.step = sample.step});
    CHECK_MESSAGE(result.ok, result.report);
  });
}

// All samples are small enough; large_operations_test.cpp uses random directions instead.
TEST_CASE("Whole Jacobians agree with central differences") {
  for_each_sample([](const Sample& sample) {
    if (sample.step == no_differences) return;
    std::vector<tg::Parameter<double>> x = parameters_of<double>(sample);
    const std::vector<tg::Array<double>> swept = swept_jacobians(sample, x);
    const double rounding = 10 * std::numeric_limits<double>::epsilon() * largest(results_of<double>(sample)[0]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i].size() == 0) continue;
      const tg::Array<double> numeric = differences(sample, x, i);
      const double scale = largest(numeric);
      for (std::size_t j = 0; j < numeric.size(); ++j) {
        const double h = step_of(sample, x[i].value().data()[j % x[i].size()]);
        if (std::abs(swept[i].data()[j] - numeric.data()[j]) <= 1e-6 * scale + rounding / h) continue;
        FAIL_CHECK("input " << i << ", output " << j / x[i].size() << ", element " << j % x[i].size() << ": backward "
                            << swept[i].data()[j] << ", differences " << numeric.data()[j] << ", the largest "
                            << scale);
        break;
      }
    }
  });
}

TEST_CASE("Values and gradients in float match those in double") {
  for_each_sample(
      [](const Sample& sample) { check_results(results_of<float>(sample), results_of<double>(sample), 1e-4); });
}

TEST_CASE("Operations do not change their inputs and are repeatable, and gradients of backward passes accumulate") {
  for_each_sample([](const Sample& sample) {
    const std::vector<tg::Parameter<double>> x = parameters_of<double>(sample), fresh = parameters_of<double>(sample);
    const Inputs<double> inputs(x.begin(), x.end());
    const tg::Array<double> y = forward_and_backward(sample, inputs);
    std::vector<tg::Array<double>> once;
    for (const auto& parameter : x) once.push_back(parameter.grad());
    CHECK(relative_difference(forward_and_backward(sample, inputs), y) == 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(i);
      CHECK(x[i].value() == fresh[i].value());
      CHECK(relative_difference(x[i].grad(), tg::Array<double>(2 * once[i])) <= 1e-14);
    }
  });
}

TEST_CASE("An input has the same gradient if the others are constants, and constants alone are not recorded") {
  for_each_sample([](const Sample& sample) {
    const std::vector<tg::Parameter<double>> x = parameters_of<double>(sample);
    const std::vector<tg::Array<double>> expected = results_of<double>(sample);
    Inputs<double> inputs;
    for (const auto& parameter : x) inputs.push_back(parameter.detach());
    {
      tg::Tape tape;
      CHECK(relative_difference(call(sample, inputs).value(), expected[0]) == 0);
      CHECK(tape.size() == 0);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(i);
      inputs[i] = x[i];
      forward_and_backward(sample, inputs);
      inputs[i] = x[i].detach();
      CHECK(relative_difference(x[i].grad(), expected[i + 1]) <= 1e-14);
    }
  });
}
