/// Runs every check on every sample in the table of operations. fixtures/operations.json holds PyTorch's results for
/// the same samples, written by fixtures/make_operations.py.
#include <tapegrad/inspect/internal/observers.hpp>
#include <tapegrad/testing.hpp>

#include <nlohmann/json.hpp>
#include <paths.hpp>

#include <cctype>
#include <fstream>
#include <map>
#include <set>

#include "../../operations/run.hpp"
#include "special_values.hpp"

namespace tg = tapegrad;
using namespace operations;

namespace {

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

// Inputs whose values are owned only by them and by rules; a parameter also owns its value.
Inputs<double> recorded_inputs(const Sample& sample, const tg::Parameter<double>& p) {
  Inputs<double> inputs;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i)
    inputs.push_back(tg::record("input", numbers<double>(sample.inputs[i], i), {p}, [](const auto&, auto&) {}));
  return inputs;
}

std::size_t saved_in_all(const tg::detail::Nodes<double>& nodes) {
  std::size_t sum = 0;
  for (const auto& entry : tg::detail::observers_of(nodes)->profile()->entries()) sum += entry.saved;
  return sum;
}

}  // namespace

TEST_CASE("Every operation of the public header has at least one sample per overload, and a row for generated inputs") {
  std::map<std::string, std::size_t> samples;
  std::set<std::string> rows, without_row{"expand",   "permute",     "reshape",                   // take all axes
                                          "accuracy", "causal_mask", "one_hot", "padding_mask"};  // take integers
  for (const Sample& sample : table().samples) {
    ++samples[sample.operation];
    if (!sample.operands.empty()) rows.insert(sample.operation);
  }
  const auto declared = declared_operations();
  CHECK(declared.size() > 50);
  for (const auto& operation : declared) {
    CAPTURE(operation.first);
    CHECK(samples[operation.first] >= operation.second);
    CHECK(rows.contains(operation.first) != without_row.contains(operation.first));
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
    CHECK(fixtures().contains(sample.title()) == sample.has_fixture);
  }
  for (const auto& fixture : fixtures().items()) {
    CAPTURE(fixture.key());
    CHECK(titles.contains(fixture.key()));
  }
}

TEST_CASE("Values and gradients match PyTorch") {
  for_each_sample([](const Sample& sample) {
    if (!sample.has_fixture) return;
    std::vector<tg::Array<double>> expected;
    for (const auto& fixture : fixtures().at(sample.title())) expected.push_back(array_of(fixture));
    check_results(results_of<double>(sample), expected, 1e-11);
  });
}

// All samples are small enough.
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

TEST_CASE("Two readers of the inputs and several of the result get the sum of the gradients") {
  for_each_sample([](const Sample& sample) {
    const Parameters<double> x = parameters_of<double>(sample), once = parameters_of<double>(sample);
    tg::Array<double> total;
    {
      tg::Tape tape;
      Inputs<double> inputs;
      for (const auto& parameter : x) inputs.push_back(parameter * 1.0);
      const tg::Tensor<double> y = call(sample, inputs), z = call(sample, inputs);
      if (!y.requires_grad()) return;
      const auto a = numbers<double>(draw(y.shape()), 50), b = numbers<double>(draw(y.shape()), 51);
      total = a + b + a;
      tg::sum(y * a + z * b + a * y).backward();
    }
    tg::Tape tape;
    call(sample, inputs_of(once)).backward(total);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(i);
      const double scale = largest(once[i].grad()) + largest(total);
      CHECK(largest(tg::Array<double>(x[i].grad() - once[i].grad())) <= 1e-13 * scale);
    }
  });
}

TEST_CASE("Inputs from other layouts give the same results") {
  for_each_sample([](const Sample& sample) {
    const std::vector<tg::Array<double>> expected = results_of<double>(sample);
    const Parameters<double> plain = parameters_of<double>(sample);
    Parameters<double> by_column, views;
    Inputs<double> transposed;
    tg::Tape tape;
    for (const auto& parameter : plain) {
      const tg::Array<double>& x = parameter.value();
      by_column.emplace_back(xt::xarray<double, xt::layout_type::column_major>(x));
      views.emplace_back(xt::transpose(xt::xarray<double>(xt::transpose(x))));
      std::vector<std::ptrdiff_t> reversed;
      for (std::size_t i = x.dimension(); i > 0; --i) reversed.push_back(static_cast<std::ptrdiff_t>(i) - 1);
      transposed.push_back(tg::permute(tg::permute(parameter, reversed), reversed));
    }
    check_results(with_gradients(forward_and_backward(sample, inputs_of(by_column)), by_column), expected, 0);
    check_results(with_gradients(forward_and_backward(sample, inputs_of(views)), views), expected, 0);
    const tg::Tensor<double> y = call(sample, transposed);
    if (y.requires_grad()) y.backward(numbers<double>(draw(y.shape()), sample.inputs.size()));
    check_results(with_gradients(y.value(), plain), expected, 1e-14);
  });
}

TEST_CASE("Float neither overflows nor loses accuracy for inputs of another size if double does not") {
  for (const double factor : {1e4, 1e-12}) {
    CAPTURE(factor);
    for_each_sample([&](const Sample& sample) {
      Sample scaled = sample;
      for (Draw& input : scaled.inputs) {
        input.low *= factor;
        input.high *= factor;
        input.gap *= factor;
      }
      const auto in_float = results_of<float>(scaled);
      const auto in_double = results_of<double>(scaled);
      for (std::size_t i = 0; i < in_float.size(); ++i) {
        CAPTURE(result_name(i));
        for (std::size_t j = 0; j < in_float[i].size(); ++j) {
          const double expected = in_double[i].data()[j], actual = in_float[i].data()[j];
          if (std::abs(expected) < 1e37 && !std::isfinite(actual)) FAIL_CHECK(actual << " instead of " << expected);
        }
      }
    });
  }
}

TEST_CASE("NaN reaches the elements that depend on it, forwards and backwards, and no others") {
  for_each_sample([](const Sample& sample) {
    if (sample.title() == "clamp: to bounds that cross") return;  // a constant, and NaN of NaN
    const bool sorts = sample.operation == "topk" || sample.operation == "argmax" ||
                       sample.operation == "accuracy";  // NaN counts as largest
    const bool weighs = sample.operation.find("attention") != std::string::npos || sample.operation == "pow" ||
                        sample.operation == "masked_softmax";  // multiplies NaN by a weight or derivative of 0
    Parameters<double> x = parameters_of<double>(sample);
    const tg::Array<double> y = call(sample, inputs_of(x)).value();
    if (x.empty()) return;
    const std::vector<tg::Array<double>> jacobians = swept_jacobians(sample, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(i);
      const tg::Array<double> value = x[i].value();
      const double far = 10 * std::max(1.0, largest(value));
      tg::Array<bool> depends(jacobians[i].shape());
      for (std::size_t element = 0; element < value.size(); ++element) {
        CAPTURE(element);
        const auto with = [&](double number) {
          tg::Array<double> changed = value;
          changed.data()[element] = number;
          x[i].set_value(changed);
          return call(sample, inputs_of(x)).value();
        };
        const double moved = value.data()[element] * 1.5 + 0.01;
        const std::vector<tg::Array<double>> changed{with(far), with(-far), with(moved), with(kInfinity),
                                                     with(-kInfinity)};
        const tg::Array<double> nan = with(std::nan(""));
        for (std::size_t j = 0; j < y.size(); ++j) {
          bool& depends_here = depends(j, element);
          depends_here = std::any_of(changed.begin(), changed.end(),
                                     [&](const auto& to) { return !(to.data()[j] == y.data()[j]); });
          CAPTURE(j);
          if (std::isnan(nan.data()[j]) ? depends_here : nan.data()[j] == y.data()[j] || (depends_here && sorts))
            continue;
          FAIL_CHECK("depends: " << depends_here << ", from " << y.data()[j] << " to " << nan.data()[j]);
        }
      }
      x[i].set_value(value);
      for (std::size_t j = 0; j < y.size(); ++j) {
        CAPTURE(j);
        const auto gradient = [&](double number) {
          x[i].zero_grad();
          tg::Tape tape;
          tg::Array<double> dy(y.shape(), 1.0);
          dy.data()[j] = number;
          const tg::Tensor<double> again = call(sample, inputs_of(x));
          if (again.requires_grad()) again.backward(dy);
          return x[i].grad();
        };
        const tg::Array<double> plain = gradient(1), nan = gradient(std::nan(""));
        for (std::size_t element = 0; element < value.size(); ++element) {
          CAPTURE(element);
          const double wrong = nan.data()[element];
          if (jacobians[i](j, element) != 0 && !std::isnan(wrong)) FAIL_CHECK("has a gradient, got " << wrong);
          if (!depends(j, element) && !weighs && wrong != plain.data()[element])
            FAIL_CHECK("has no gradient, got " << wrong);
        }
      }
    }
  });
}

TEST_CASE("The reported saved bytes are those held by the recording, for every operation") {
  for_each_sample([](const Sample& sample) {
    const tg::Parameter<double> p(tg::Array<double>{1.0});
    const tg::Tape tape({.profile = true});
    const auto& recording = tape.recording()->of<double>();
    const std::ptrdiff_t before = tg::detail::array_bytes_in_use;
    tg::manual_seed(0);
    (void)sample.in_double(recorded_inputs(sample, p));
    const auto kept = static_cast<std::size_t>(tg::detail::array_bytes_in_use - before);
    const std::size_t operations = recording.size() - 1 - sample.inputs.size();
    CAPTURE(operations);
    CHECK(saved_in_all(recording) >= kept);
    // An array saved twice is counted twice and stored once, as when queries and keys are one tensor.
    if (operations == 1) CHECK(saved_in_all(recording) <= 2 * kept);
  });
}
