/// The table of operations: samples for each operation, small calls with their inputs, for all checks in engine/ops.
/// The Python files in this folder define the same samples in PyTorch.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace operations {

namespace tg = tapegrad;

/// An input: numbers evenly distributed in [low, high), moved away from 0 by `gap` if the operation has a kink there.
struct Draw {
  tg::Shape shape;
  double low, high, gap;
};

inline Draw draw(tg::Shape shape, double low = -1, double high = 1, double gap = 0) {
  return {std::move(shape), low, high, gap};
}

/// The numbers of an input. All are exact in float, so float and double compute from the same numbers.
template <class T> tg::Array<T> numbers(const Draw& draw, std::uint64_t key);

/// A mask for an attention sample; about two thirds of it are true.
tg::BoolArray drawn_mask(const tg::Shape& shape, std::uint64_t key);

template <class T> using Inputs = std::vector<tg::Tensor<T>>;
template <class T> using Function = tg::Tensor<T> (*)(const Inputs<T>&);
template <class T> using AxisFunction = tg::Tensor<T> (*)(const Inputs<T>&, std::ptrdiff_t axis);

/// The form of an input: its axes, and those that may precede them. See Draws.
struct Operand {
  enum Outer { none, broadcast, equal, batch } outer;
  struct Axis {
    char letter;
    bool optional;
  };
  std::vector<Axis> axes;
};

std::vector<Operand> operands_of(std::string_view axes);

/// The inputs of a sample. With `axes` it is a row for generated inputs: its call applies to all inputs of this form.
/// `axes` lists the axes of each input, such as "...mn,...n?". A lowercase letter has any extent, but the same
/// everywhere; an uppercase one keeps the sample's. "n?" may be absent. Leading axes may be any that broadcast ("..."),
/// any that are equal ("*"), or one batch axis ("1"); the operation repeats its call for each of their elements.
struct Draws {
  std::vector<Draw> all;
  const char* axes = "";

  Draws(std::initializer_list<Draw> all_) : all(all_) {}
  Draws(std::vector<Draw> all_) : all(std::move(all_)) {}
  Draws(const char* axes_, std::vector<Draw> all_) : all(std::move(all_)), axes(axes_) {}
  template <std::same_as<Draw>... Others>
  Draws(const char* axes_, Draw first, Others... others) : all{first, others...}, axes(axes_) {}
};

/// Replaces the step if the gradient is intentionally not the derivative.
constexpr double no_differences = 0;

struct Sample {
  std::string operation;  // as declared in engine/ops/ops.hpp
  std::string name;
  std::vector<Draw> inputs;
  Function<float> in_float;
  Function<double> in_double;
  double step;                      // step of the central differences, or no_differences
  bool has_fixture = true;          // defined in PyTorch, too
  std::vector<Operand> operands{};  // if the sample is a row for generated inputs
  AxisFunction<float> float_along = nullptr;
  AxisFunction<double> double_along = nullptr;

  std::string title() const { return operation + ": " + name; }

  /// Makes the sample a row with any axes before and behind those listed; f(inputs, axis) is the call along this axis.
  template <class F> void along(const char* axes, F f) {
    float_along = f;
    double_along = f;
    operands = operands_of(axes);
    for (Operand& operand : operands) operand.outer = Operand::equal;
  }
};

struct Table {
  std::vector<Sample> samples;

  /// f accepts the Inputs in float and in double.
  template <class F> Sample& add(const char* operation, const char* name, Draws inputs, F f, double step = 1e-6) {
    Sample& sample = samples.emplace_back(Sample{operation, name, std::move(inputs.all), f, f, step});
    if (*inputs.axes) sample.operands = operands_of(inputs.axes);
    return sample;
  }

  /// A row without a twin in PyTorch.
  template <class F> Sample& derive(const char* operation, const char* name, Draws inputs, F f) {
    Sample& sample = add(operation, name, std::move(inputs), f);
    sample.has_fixture = false;
    return sample;
  }

  /// The same along an axis.
  template <class F> void derive(const char* operation, const char* name, Draws inputs, const char* axes, F f) {
    derive(operation, name, std::move(inputs), [](const auto& x) { return F()(x, 0); }).along(axes, f);
  }
};

/// All samples, from the files in this folder.
const Table& table();

void add_arithmetic(Table& table);
void add_elementwise(Table& table);
void add_products(Table& table);
void add_views(Table& table);
void add_reductions(Table& table);
void add_attention(Table& table);
void add_losses(Table& table);
void add_indices(Table& table);
void add_selection(Table& table);

}  // namespace operations
