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
template <class V> using NumberOf = typename V::value_type::value_type;  // of Values: float or double

/// A value that a step takes: its place among the values of the program, and its shape.
struct Input {
  std::size_t place;
  tg::Shape shape;

  std::size_t axes() const { return shape.size(); }
  std::size_t size() const { return tg::element_count(shape); }
};

/// Whether an operation is differentiable at these inputs, and around them as far as the differences step.
using Smooth = std::function<bool(const Values<double>&)>;

/// An operation with its arguments. f takes the Values that are its inputs, in float or in double.
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

/// What a program begins with: numbers that fit into a float. Of a small one each element is a parameter. A large one
/// is `numbers` + t `direction` with a parameter t, which costs two calls to check instead of two for each element.
struct Leaf {
  enum class Kind { constant, elements, direction };

  std::size_t place;  // among the values
  Kind kind;
  tg::Array<double> numbers, direction;
};

/// The values are the leaves and the results of the steps, in the order in which they were drawn. The last is a step's;
/// a program without steps is empty.
struct Program {
  struct Node {
    const char* operation;  // null: a leaf
    std::size_t index;      // among the leaves or the steps
  };

  std::vector<Node> nodes;
  std::vector<Leaf> leaves;
  std::vector<Step> steps;
};

/// Draws what an operation needs from the bytes of an input; zeros follow its end.
class Draw {
 public:
  /// Thrown instead of a step that would compute too long.
  struct TooLarge {};

  explicit Draw(std::string_view bytes);

  bool at_end() const { return bytes_.empty(); }
  /// Evenly from 0, ..., count - 1.
  std::size_t below(std::size_t count);
  bool chance(std::size_t one_in) { return below(one_in) == one_in - 1; }
  double number(double low, double high) { return low + (high - low) * static_cast<double>(below(256)) / 255; }
  std::uint64_t key() { return below(256); }

  /// Any value, the latest likelier than others; or one of this shape, made where there is none. Once in a while it has
  /// another shape.
  Input input();
  Input input(const tg::Shape& shape);
  /// Two that broadcast together.
  std::vector<Input> two_to_broadcast();

  /// One of the few extents that this program has.
  std::size_t extent() { return extents_[below(extents_.size())]; }
  tg::Shape shape(std::size_t most_axes = 4);
  /// A shape that broadcasts to this one.
  tg::Shape shape_for(const tg::Shape& shape);
  /// From the first to the last and from the end; once in a while outside.
  std::ptrdiff_t axis(const Input& x);
  /// Some axes, none of them, once in a while one twice.
  tg::Axes axes(const Input& x);
  /// The extent along an axis, 1 for an axis outside.
  static std::size_t extent_of(const Input& x, std::ptrdiff_t axis);

  /// Whole numbers below `bound`, once in a while one outside.
  tg::IntArray ids(const tg::Shape& shape, std::size_t bound);
  tg::BoolArray mask(const tg::Shape& shape);
  /// Numbers for constants: evenly from [low, high).
  template <class T> static tg::Array<T> numbers(std::uint64_t key, const tg::Shape& shape, double low, double high) {
    tg::Generator generator(key);
    return tg::Array<T>(tg::uniform<float>(shape, low, high, generator));
  }

  /// Throws TooLarge for more elements, or products to be added, than a quick step has.
  static void require_quick(std::size_t count);

 private:
  friend class Builder;
  Input add_leaf(const tg::Shape& shape);

  std::string_view bytes_;
  std::vector<std::size_t> extents_;
  Program program_;
  std::vector<tg::Shape> shapes_;             // of the values
  std::function<void(const Leaf&)> on_leaf_;  // computes it
};

/// An operation: draws its inputs and arguments.
struct Operation {
  const char* name;
  std::function<Step(Draw&)> draw;
};

/// All operations of engine/ops/ops.hpp, and recompute.
const std::vector<Operation>& operations();

/// Draws a program. An operation that refuses its arguments, as float and double must alike and leaving the tape as it
/// was, has no step in it; nor has one that is not differentiable where it stands, or whose result is not finite.
Program draw_program(std::string_view bytes);

/// The values of a leaf: a parameter, or what is made of one, or a constant. `parameter` is what gradients flow to.
template <class T> tg::Tensor<T> value_of(const Leaf& leaf, const tg::Parameter<T>& parameter) {
  switch (leaf.kind) {
    case Leaf::Kind::elements:
      return parameter;
    case Leaf::Kind::direction:
      return tg::Tensor<T>(tg::Array<T>(leaf.numbers)) + parameter * tg::Tensor<T>(tg::Array<T>(leaf.direction));
    case Leaf::Kind::constant:
      break;
  }
  return tg::Tensor<T>(tg::Array<T>(leaf.numbers));
}

/// The parameter of a leaf; undefined for a constant.
template <class T> tg::Parameter<T> parameter_of(const Leaf& leaf) {
  switch (leaf.kind) {
    case Leaf::Kind::elements:
      return tg::Parameter<T>(tg::Array<T>(leaf.numbers));
    case Leaf::Kind::direction:
      return tg::Parameter<T>(tg::Array<T>(tg::Shape{}, T(0)));
    case Leaf::Kind::constant:
      break;
  }
  return {};
}

}  // namespace fuzz
