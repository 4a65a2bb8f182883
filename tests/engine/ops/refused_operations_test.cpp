/// Refusals generated from the rows of the table of operations: wrong counts of axes, extents and axes. Each names the
/// operation and the shapes or numbers it got, and records nothing.
#include <cctype>
#include <map>

#include "../../operations/run.hpp"
#include "refused.hpp"

namespace tg = tapegrad;
using namespace operations;
using tg::Shape;

namespace {

// The name in errors.
std::string name_of(const std::string& operation) {
  const std::map<char, std::string> operators{{'+', "add"}, {'-', "sub"}, {'*', "mul"}, {'/', "div"}};
  return operation.starts_with("operator") ? operators.at(operation[8]) : operation;
}

// Calls with parameters of these shapes under a tape, like a training step, and expects an error before any change.
template <class Call>
void check_refused(const Sample& sample, const std::vector<Shape>& shapes, const std::string& told, Call call) {
  Parameters<double> x;
  for (const Shape& shape : shapes) x.emplace_back(numbers<double>(draw(shape), x.size()));
  std::string given;
  for (const Shape& shape : shapes) given += tg::to_string(shape);
  INFO(sample.title(), " of ", given, ", ", told);
  check_refused_unchanged(name_of(sample.operation), {told}, [&] { call(inputs_of(x)); });
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i].value() == numbers<double>(draw(shapes[i]), i));
}

std::vector<Shape> shapes_of(const Sample& sample) {
  std::vector<Shape> shapes;
  for (const Draw& input : sample.inputs) shapes.push_back(input.shape);
  return shapes;
}

// Errors about axes count these instead of naming the shape.
void check_shapes_refused(const Sample& sample, const std::vector<Shape>& shapes, const Shape& told) {
  const bool counts = sample.operation == "transpose" || (sample.operation == "cat" && shapes.back().empty());
  check_refused(sample, shapes, counts ? std::to_string(told.size()) + " axes" : tg::to_string(told),
                [&](const auto& x) { return call(sample, x); });
}

// The sample's shapes with one replaced by the result of change(shape).
template <class Change> void check_changed_refused(const Sample& sample, std::size_t input, Change change) {
  std::vector<Shape> shapes = shapes_of(sample);
  change(shapes[input]);
  check_shapes_refused(sample, shapes, shapes[input]);
}

template <class Check> void for_each_repeated(Check check) {
  for (const Sample& sample : table().samples)
    if (!sample.operands.empty()) check(sample);
}

}  // namespace

TEST_CASE("An axis too few is refused") {
  for_each_repeated([](const Sample& sample) {
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
      const Operand& operand = sample.operands[i];
      if (operand.outer != Operand::batch && (operand.axes.empty() || operand.axes[0].optional)) continue;
      if (sample.double_along && sample.inputs.size() == 1) continue;  // a scalar's axis
      check_changed_refused(sample, i, [](Shape& shape) { shape.erase(shape.begin()); });
    }
  });
}

TEST_CASE("An axis too many is refused") {
  for_each_repeated([](const Sample& sample) {
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
      const auto outer = sample.operands[i].outer;
      if (outer == Operand::broadcast || (outer == Operand::equal && sample.inputs.size() == 1)) continue;
      for (const std::size_t extent : {1, 2})
        check_changed_refused(sample, i, [&](Shape& shape) { shape.insert(shape.begin(), extent); });
    }
  });
}

TEST_CASE("Different extents of an axis with the same letter are refused") {
  for_each_repeated([](const Sample& sample) {
    std::map<char, std::size_t> uses;
    for (const Operand& operand : sample.operands)
      for (const auto& axis : operand.axes) ++uses[axis.letter];
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
      std::size_t at = sample.operands[i].outer == Operand::batch;
      for (const auto& axis : sample.operands[i].axes) {
        if (uses[axis.letter] > 1)
          for (const std::size_t more : {1, 2})
            check_changed_refused(sample, i, [&](Shape& shape) { shape[at] += more; });
        ++at;
      }
    }
  });
}

TEST_CASE("Different outer axes are refused") {
  for_each_repeated([](const Sample& sample) {
    const auto with_outer = [&](const Shape& first, const Shape& last) {
      std::vector<Shape> shapes = shapes_of(sample);
      for (Shape& shape : shapes) {
        const Shape& outer = &shape == &shapes.back() ? last : first;
        if (sample.operands[0].outer == Operand::batch) shape.erase(shape.begin());
        shape.insert(shape.begin(), outer.begin(), outer.end());
      }
      check_shapes_refused(sample, shapes, shapes.back());
    };
    if (sample.inputs.size() == 1 || sample.operands.back().outer == Operand::none) return;
    with_outer({2}, {3});
    with_outer({3}, {2});
    with_outer({2}, {0});
    if (sample.operands[0].outer == Operand::batch) return;
    with_outer({2, 3}, {3, 3});
    with_outer({2, 3}, {2});
    if (sample.operands[0].outer == Operand::broadcast) return;
    with_outer({2}, {1});
    with_outer({}, {1});
  });
}

TEST_CASE("An axis outside the input's is refused") {
  for_each_repeated([](const Sample& sample) {
    if (!sample.double_along) return;
    const bool inserts = sample.operands[0].axes.empty();
    for (const Shape& outer : {Shape{}, Shape{2}, Shape{2, 0}}) {
      std::vector<Shape> shapes = shapes_of(sample);
      for (Shape& shape : shapes) shape.insert(shape.begin(), outer.begin(), outer.end());
      const auto axes = static_cast<std::ptrdiff_t>(shapes[0].size() + inserts);
      for (const std::ptrdiff_t axis : {axes, -axes - 1, axes + 100})
        check_refused(sample, shapes, "got " + std::to_string(axis),
                      [&](const auto& x) { return sample.double_along(x, axis); });
    }
    if (inserts || !sample.operands[0].axes[0].optional) return;
    for (const std::ptrdiff_t axis : {1, -2})
      check_refused(sample, {{}}, "got " + std::to_string(axis),
                    [&](const auto& x) { return sample.double_along(x, axis); });
  });
}
