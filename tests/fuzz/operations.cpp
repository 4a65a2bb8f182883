/// Fuzzes programs of operations: central differences confirm each gradient in double, and float gives the same.
#include <tapegrad/testing.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "fuzz.hpp"
#include "operations/program.hpp"

namespace {

using namespace fuzz;

constexpr double kSteepest = 1e4;  // rounding dominates larger gradients

template <class T> std::vector<tg::Parameter<T>> parameters_of(const Program& program) {
  std::vector<tg::Parameter<T>> parameters;
  for (const Leaf& leaf : program.leaves) parameters.push_back(parameter_of<T>(leaf));
  return parameters;
}

/// All values of the program.
template <class T> Values<T> run(const Program& program, const std::vector<tg::Parameter<T>>& parameters) {
  Values<T> values;
  for (const auto& [operation, index] : program.nodes)
    values.push_back(operation ? program.steps[index].run(values) : value_of(program.leaves[index], parameters[index]));
  return values;
}

/// The values, and each one's gradient in a backward pass from the last; 0 for a value without one.
template <class T> struct Swept {
  Values<T> values;
  std::vector<tg::Array<T>> gradients;
};

template <class T> Swept<T> sweep(const Program& program) {
  const std::vector<tg::Parameter<T>> parameters = parameters_of<T>(program);
  tg::Tape tape;
  Swept<T> swept{run(program, parameters), {}};
  tg::Tensor<T>& last = swept.values.back();
  for (tg::Tensor<T>& value : swept.values)
    if (value.requires_grad()) value.retain_grad();
  if (last.requires_grad()) last.backward(Draw::numbers<T>(2, last.shape(), -1, 1));
  for (const tg::Tensor<T>& value : swept.values)
    swept.gradients.push_back(value.requires_grad() ? value.grad() : tg::Array<T>(tg::Shape{}, T(0)));
  return swept;
}

/// The largest absolute value; infinity if a number is NaN.
double largest(const std::vector<tg::Array<double>>& arrays) {
  double most = 0;
  for (const auto& array : arrays)
    for (const double number : array) most = std::isnan(number) ? INFINITY : std::max(most, std::abs(number));
  return most;
}

std::string described(const Program& program) {
  std::ostringstream text;
  const std::vector<tg::Parameter<double>> parameters = parameters_of<double>(program);
  const Values<double> values = run(program, parameters);
  for (std::size_t place = 0; place < program.nodes.size(); ++place) {
    const auto& [operation, index] = program.nodes[place];
    text << "\n  %" << place << ' ' << tg::to_string(values[place].shape()) << " = ";
    if (operation == nullptr) {
      text << (program.leaves[index].kind == Leaf::Kind::constant ? "constant" : "leaf");
      continue;
    }
    text << operation;
    for (const std::size_t input : program.steps[index].inputs) text << " %" << input;
  }
  return text.str();
}

template <class Mine, class Reference>
void expect_close(const Program& program, const char* what, std::size_t place, const Mine& mine,
                  const Reference& reference, double tolerance) {
  expect(mine.shape() == reference.shape(),
         std::string(what) + " of %" + std::to_string(place) + " of another shape in float:" + described(program));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double a = mine.data()[i], b = reference.data()[i];
    if (std::abs(a - b) <= tolerance) continue;
    std::ostringstream text;
    text << what << " of %" << place << ", element " << i << ": " << a << " in float, " << b << " in double"
         << described(program);
    finding(text.str());
  }
}

/// Empty if central differences of any step size agree with the gradients, otherwise the last report.
std::string refuted(const Program& program) {
  std::vector<tg::Parameter<double>> parameters = parameters_of<double>(program);
  tg::NamedParameters<double> named;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].defined()) named.emplace_back("%" + std::to_string(program.leaves[i].place), parameters[i]);
  if (named.empty()) return "";
  std::string report;
  for (const double step : {1e-6, 1e-5, 1e-4}) {
    const auto result = tg::testing::gradcheck([&] { return run(program, parameters).back(); }, named,
                                               {.step = step, .tolerance = 1e-5});
    if (result) return "";
    report = result.report;
  }
  return report;
}

void check(const Program& program) {
  const Swept<double> in_double = sweep<double>(program);
  const double steepest = largest(in_double.gradients);
  if (steepest > kSteepest) return;
  const Swept<float> in_float = sweep<float>(program);
  for (std::size_t place = 0; place < program.nodes.size(); ++place) {
    expect_close(program, "value", place, in_float.values[place].value(), in_double.values[place].value(), 1e-2);
    expect_close(program, "gradient", place, in_float.gradients[place], in_double.gradients[place],
                 1e-2 * std::max(1.0, steepest));
  }
  const std::string report = refuted(program);
  expect(report.empty(), report + described(program));
}

}  // namespace

void fuzz::fuzz_one(std::string_view input) {
  const std::ptrdiff_t before = tg::pool_blocks_in_use();
  {
    const Program program = draw_program(input);
    if (!program.nodes.empty()) check(program);
  }
  expect(tg::pool_blocks_in_use() == before, "the program keeps pooled blocks");
}

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> inputs;
  for (std::uint64_t key = 0; key < 200; ++key) {
    std::string& input = inputs.emplace_back(40 + key, '\0');
    for (std::size_t i = 0; i < input.size(); ++i)
      input[i] = static_cast<char>(static_cast<unsigned char>(256 * tg::random_uniform(key, i)));
  }
  return inputs;
}
