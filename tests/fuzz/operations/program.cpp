#include "program.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "../findings.hpp"

namespace fuzz {

namespace {

constexpr std::size_t kMaxSteps = 8, kMaxElements = 4096, kMaxWork = 1 << 16;
constexpr double kLargest = 100;  // bounds numbers, to keep rounding errors small

constexpr std::size_t kExtents[] = {0, 1, 2, 3, 4, 5, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257};

bool is_small(const tg::Array<double>& x) {
  return std::ranges::all_of(x, [](double number) { return std::abs(number) <= kLargest; });  // false for NaN
}

}  // namespace

// ---- drawing -------------------------------------------------------------------------------------------------------

Draw::Draw(std::string_view bytes) : bytes_(bytes) {
  for (int i = 0; i < 3; ++i) extents_.push_back(kExtents[below(std::size(kExtents))]);
  extents_.push_back(1);
}

std::size_t Draw::below(std::size_t count) {
  std::size_t number = 0;
  for (std::size_t range = 1; range < count; range *= 256) number = number * 256 + take_byte(bytes_);
  return count == 0 ? 0 : number % count;
}

void Draw::require_quick(std::size_t count) {
  if (count > kMaxWork) throw TooLarge{};
}

tg::Shape Draw::shape(std::size_t most_axes) {
  tg::Shape shape(below(most_axes + 1));
  std::size_t elements = 1;
  for (std::size_t& extent : shape) {
    extent = this->extent();
    if (elements * extent > kMaxElements) extent = 1;
    elements *= extent;
  }
  return shape;
}

tg::Shape Draw::shape_for(const tg::Shape& shape) {
  tg::Shape fitting = shape;
  const std::size_t choice = below(8);
  if (choice >= 6) fitting = tg::Shape(shape.end() - static_cast<std::ptrdiff_t>(below(shape.size() + 1)), shape.end());
  if (choice >= 4)
    for (std::size_t& extent : fitting)
      if (chance(2)) extent = 1;
  return fitting;
}

std::ptrdiff_t Draw::axis(const Input& x) {
  const auto axes = static_cast<std::ptrdiff_t>(x.axes());
  if (chance(32)) return chance(2) ? axes : -axes - 1;
  return static_cast<std::ptrdiff_t>(below(std::max<std::size_t>(1, 2 * x.axes()))) - axes;
}

tg::Axes Draw::axes(const Input& x) {
  std::vector<std::ptrdiff_t> axes;
  for (std::size_t i = 0; i < x.axes(); ++i)
    if (chance(2))
      axes.push_back(static_cast<std::ptrdiff_t>(i) - (chance(4) ? static_cast<std::ptrdiff_t>(x.axes()) : 0));
  if (chance(32)) axes.push_back(axis(x));
  return axes;
}

std::size_t Draw::extent_of(const Input& x, std::ptrdiff_t axis) {
  const auto axes = static_cast<std::ptrdiff_t>(x.axes());
  const std::ptrdiff_t i = axis < 0 ? axis + axes : axis;
  return i < 0 || i >= axes ? 1 : x.shape[static_cast<std::size_t>(i)];
}

tg::IntArray Draw::ids(const tg::Shape& shape, std::size_t bound) {
  require_quick(tg::element_count(shape));
  const std::uint64_t seed = key();
  tg::IntArray ids(shape);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids.data()[i] = static_cast<std::int64_t>(tg::random_uniform(seed, i) * static_cast<double>(bound));
  if (ids.size() > 0 && chance(16)) ids.data()[below(ids.size())] = chance(2) ? static_cast<std::int64_t>(bound) : -1;
  return ids;
}

tg::BoolArray Draw::mask(const tg::Shape& shape) {
  require_quick(tg::element_count(shape));
  const std::uint64_t seed = key();
  tg::BoolArray mask(shape);
  for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = tg::random_uniform(seed, i) < 0.6;
  return mask;
}

Input Draw::add_leaf(const tg::Shape& shape) {
  require_quick(tg::element_count(shape) * (kMaxWork / kMaxElements));
  const std::size_t choice = below(8);
  const double low = chance(3) ? 0.25 : -2;  // positive numbers for logarithms and roots
  Leaf leaf{program_.nodes.size(), Leaf::Kind::constant, numbers<double>(key(), shape, low, 2), {}};
  if (choice > 0) leaf.kind = leaf.numbers.size() <= 4 ? Leaf::Kind::elements : Leaf::Kind::direction;
  leaf.direction = numbers<double>(1, shape, -1, 1);
  on_leaf_(leaf);
  program_.nodes.push_back({nullptr, program_.leaves.size()});
  program_.leaves.push_back(std::move(leaf));
  shapes_.push_back(shape);
  return {program_.nodes.size() - 1, shape};
}

Input Draw::input() {
  if (shapes_.empty() || chance(8)) return add_leaf(shape());
  const std::size_t place = shapes_.size() - 1 - std::min(below(shapes_.size()), below(shapes_.size()));
  return {place, shapes_[place]};
}

Input Draw::input(const tg::Shape& shape) {
  if (chance(32)) return input();
  std::vector<std::size_t> fitting;
  for (std::size_t place = 0; place < shapes_.size(); ++place)
    if (shapes_[place] == shape) fitting.push_back(place);
  if (fitting.empty() || chance(4)) return add_leaf(shape);
  return {fitting[below(fitting.size())], shape};
}

std::vector<Input> Draw::two_to_broadcast() {
  const Input a = input(), b = input(shape_for(a.shape));
  std::size_t count = 1;  // an upper bound
  for (std::size_t i = 1; i <= std::max(a.axes(), b.axes()); ++i)
    count *= std::max(
        {std::size_t{1}, i <= a.axes() ? a.shape[a.axes() - i] : 1, i <= b.axes() ? b.shape[b.axes() - i] : 1});
  require_quick(count);
  return chance(2) ? std::vector{a, b} : std::vector{b, a};
}

// ---- building ------------------------------------------------------------------------------------------------------

/// Computes drawn values in float and double on a tape.
class Builder {
 public:
  explicit Builder(std::string_view bytes) : draw_(bytes) {
    draw_.on_leaf_ = [this](const Leaf& leaf) {
      floats_.push_back(value_of(leaf, parameter_of<float>(leaf)));
      doubles_.push_back(value_of(leaf, parameter_of<double>(leaf)));
    };
  }

  Program build() {
    draw_.add_leaf(draw_.shape());
    while (!draw_.at_end() && draw_.program_.steps.size() < kMaxSteps) add_step();
    Program& program = draw_.program_;
    for (; !program.nodes.empty() && program.nodes.back().operation == nullptr; program.nodes.pop_back())
      program.leaves.pop_back();  // their step was not added
    return std::move(program);
  }

 private:
  template <class T> struct Outcome {
    tg::Tensor<T> value;
    std::string refusal;
    bool is_input = false;  // returned as it is, like dropout's in evaluation
  };

  template <class T> Outcome<T> attempt(const char* operation, const Step& step, const Values<T>& values) {
    const std::size_t recorded = tape_.size();
    Outcome<T> outcome;
    const std::string message = refusal([&] { outcome.value = step.run(values); });
    outcome.is_input = outcome.value.requires_grad() && tape_.size() == recorded;
    if (message.empty()) return outcome;
    expect(tape_.size() == recorded, std::string(operation) + " was refused, and recorded something");
    expect(message.starts_with('[') && message.find("] expected ") != message.npos,
           std::string(operation) + ": expected \"[operation] expected ...\", got \"" + message + '"');
    outcome.refusal = message;
    return outcome;
  }

  void add_step() {
    const Operation& operation = operations()[draw_.below(operations().size())];
    try {
      const Step step = operation.draw(draw_);
      const auto [in_double, refused_in_double, is_input] = attempt(operation.name, step, doubles_);
      const auto [in_float, refused_in_float, is_input_in_float] = attempt(operation.name, step, floats_);
      expect(refused_in_double == refused_in_float, std::string(operation.name) + " in double: \"" + refused_in_double +
                                                        "\", in float: \"" + refused_in_float + '"');
      expect(is_input == is_input_in_float, std::string(operation.name) + " gives its input back in one type alone");
      if (!refused_in_double.empty() || is_input || !is_small(in_double.value())) return;
      if (in_double.size() > kMaxElements || (step.smooth && !step.smooth(step.taken(doubles_)))) return;
      doubles_.push_back(in_double);
      floats_.push_back(in_float);
      draw_.shapes_.push_back(in_double.shape());
      draw_.program_.nodes.push_back({operation.name, draw_.program_.steps.size()});
      draw_.program_.steps.push_back(step);
    } catch (const Draw::TooLarge&) {
    }
  }

  tg::Tape tape_;
  Draw draw_;
  Values<float> floats_;
  Values<double> doubles_;
};

Program draw_program(std::string_view bytes) { return Builder(bytes).build(); }

}  // namespace fuzz
