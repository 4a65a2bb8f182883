/// Programs of operations, drawn from an input's bytes.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace fuzz {

namespace tg = tapegrad;

template <class T> using Values = std::vector<tg::Tensor<T>>;
template <class V> using NumberOf = typename V::value_type::value_type;  // float or double

/// A step's input: its place among the program's values, and its shape.
struct Input {
  std::size_t place;
  tg::Shape shape;

  std::size_t axes() const { return shape.size(); }
  std::size_t size() const { return tg::element_count(shape); }
};

/// True if an operation is differentiable at these inputs and within the finite differences around them.
using Smooth = std::function<bool(const Values<double>&)>;

/// An operation with its arguments. f takes the inputs' Values, in float or double.
struct Step {
  template <class F>
  Step(const std::vector<Input>& taken, F f, Smooth is_smooth = {})
      : in_float(f), in_double(f), smooth(std::move(is_smooth)) {
    for (const Input& input : taken) inputs.push_back(input.place);
  }

  template <class T> tg::Tensor<T> run(const Values<T>& values) const {
    if constexpr (std::is_same_v<T, float>)
      return in_float(taken(values));
    else
      return in_double(taken(values));
  }
  template <class T> Values<T> taken(const Values<T>& values) const {
    Values<T> of_inputs;
    for (const std::size_t place : inputs) of_inputs.push_back(values[place]);
    return of_inputs;
  }

  std::vector<std::size_t> inputs;
  std::function<tg::Tensor<float>(const Values<float>&)> in_float;
  std::function<tg::Tensor<double>(const Values<double>&)> in_double;
  Smooth smooth;
};

/// A program's initial values, exact in float. In a small one, each element is a parameter. A large one is `numbers` +
/// t `direction` with a parameter t: checking it takes two calls instead of two per element.
struct Leaf {
  enum class Kind { constant, elements, direction };

  std::size_t place;  // index of the value
  Kind kind;
  tg::Array<double> numbers, direction;
};

/// The values are the leaves and the steps' results, in drawing order. A step gives the last one; a program without
/// steps is empty.
struct Program {
  struct Node {
    const char* operation;  // null for a leaf
    std::size_t index;      // in leaves or steps
  };

  std::vector<Node> nodes;
  std::vector<Leaf> leaves;
  std::vector<Step> steps;
};

/// Draws an operation's inputs and arguments from an input's bytes, followed by zeros.
class Draw {
 public:
  /// Thrown for steps that would take too long.
  struct TooLarge {};

  explicit Draw(std::string_view bytes);

  bool at_end() const { return bytes_.empty(); }
  /// Uniform in 0, ..., count - 1.
  std::size_t below(std::size_t count);
  bool chance(std::size_t one_in) { return below(one_in) == one_in - 1; }
  double number(double low, double high) { return low + (high - low) * static_cast<double>(below(256)) / 255; }
  std::uint64_t key() { return below(256); }

  /// Draws a value, preferring recent ones. With a shape, mostly draws one of that shape, or creates it; the shape
  /// rarely differs.
  Input input();
  Input input(const tg::Shape& shape);
  /// Draws two values with broadcastable shapes.
  std::vector<Input> two_to_broadcast();

  /// One of the program's few extents.
  std::size_t extent() { return extents_[below(extents_.size())]; }
  tg::Shape shape(std::size_t most_axes = 4);
  /// A shape broadcastable with this one.
  tg::Shape shape_for(const tg::Shape& shape);
  /// Counted from either end, and rarely out of range.
  std::ptrdiff_t axis(const Input& x);
  /// Any number of axes, rarely a duplicate one or one out of range.
  tg::Axes axes(const Input& x);
  /// The extent along an axis, or 1 if it is out of range.
  static std::size_t extent_of(const Input& x, std::ptrdiff_t axis);

  /// Integers below `bound`, rarely one out of range.
  tg::IntArray ids(const tg::Shape& shape, std::size_t bound);
  tg::BoolArray mask(const tg::Shape& shape);
  /// Constants' numbers, uniform in [low, high).
  template <class T> static tg::Array<T> numbers(std::uint64_t key, const tg::Shape& shape, double low, double high) {
    tg::Generator generator(key);
    return tg::Array<T>(tg::uniform<float>(shape, low, high, generator));
  }

  /// Throws TooLarge for too many elements or multiplications.
  static void require_quick(std::size_t count);

 private:
  friend class Builder;
  Input add_leaf(const tg::Shape& shape);

  std::string_view bytes_;
  std::vector<std::size_t> extents_;
  Program program_;
  std::vector<tg::Shape> shapes_;             // one per value
  std::function<void(const Leaf&)> on_leaf_;  // computes the leaf
};

/// An operation. `draw` draws its inputs and arguments.
struct Operation {
  const char* name;
  std::function<Step(Draw&)> draw;
};

/// All operations of engine/ops/ops.hpp, and recompute.
const std::vector<Operation>& operations();

/// Draws a program. It has no steps that throw, with the same message in float and double and an unchanged tape, and
/// none with a kink at its inputs or a result that is not finite.
Program draw_program(std::string_view bytes);

/// The values of a leaf: a parameter, a function of one, or a constant. `parameter` receives the gradient.
template <class T> tg::Tensor<T> value_of(const Leaf& leaf, const tg::Parameter<T>& parameter) {
  if (leaf.kind == Leaf::Kind::elements) return parameter;
  const tg::Tensor<T> numbers{tg::Array<T>(leaf.numbers)};
  if (leaf.kind == Leaf::Kind::constant) return numbers;
  return numbers + parameter * tg::Tensor<T>(tg::Array<T>(leaf.direction));
}

/// The parameter of a leaf; undefined for a constant.
template <class T> tg::Parameter<T> parameter_of(const Leaf& leaf) {
  if (leaf.kind == Leaf::Kind::constant) return {};
  return tg::Parameter<T>(leaf.kind == Leaf::Kind::elements ? tg::Array<T>(leaf.numbers)
                                                            : tg::Array<T>(tg::Shape{}, T(0)));
}

}  // namespace fuzz
