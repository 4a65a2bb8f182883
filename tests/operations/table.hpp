/// The table of operations: samples for each operation, small calls with their inputs, for all checks in
/// operations_test.cpp. The Python files in this folder define the same samples in PyTorch.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>
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

/// Replaces the step if the gradient is intentionally not the derivative.
constexpr double no_differences = 0;

struct Sample {
  std::string operation;  // as declared in engine/ops/ops.hpp
  std::string name;
  std::vector<Draw> inputs;
  Function<float> in_float;
  Function<double> in_double;
  double step;  // step of the central differences, or no_differences

  std::string title() const { return operation + ": " + name; }
};

struct Table {
  std::vector<Sample> samples;

  /// f accepts the Inputs in float and in double.
  template <class F>
  void add(const char* operation, const char* name, std::vector<Draw> inputs, F f, double step = 1e-6) {
    samples.push_back({operation, name, std::move(inputs), f, f, step});
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
