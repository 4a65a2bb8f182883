/// The table of operations: of each one samples, small calls with their inputs, that operations_test.cpp runs through
/// every check. The same samples stand in fixtures/make_operations.py, written in PyTorch.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <string>
#include <vector>

namespace operations {

namespace tg = tapegrad;

/// An input: numbers evenly from [low, high), moved away from 0 by `gap` where an operation has a kink there.
struct Draw {
  tg::Shape shape;
  double low, high, gap;
};

inline Draw draw(tg::Shape shape, double low = -1, double high = 1, double gap = 0) {
  return {std::move(shape), low, high, gap};
}

/// The numbers of an input. They fit into a float, so that float and double compute from the same ones.
template <class T> tg::Array<T> numbers(const Draw& draw, std::uint64_t key);

/// A mask for an attention sample, about two thirds of it true.
tg::BoolArray drawn_mask(const tg::Shape& shape, std::uint64_t key);

template <class T> using Inputs = std::vector<tg::Tensor<T>>;
template <class T> using Function = tg::Tensor<T> (*)(const Inputs<T>&);

/// Instead of a step, for a gradient that is by intent not the derivative.
constexpr double no_differences = 0;

struct Sample {
  std::string operation;  // as engine/ops/ops.hpp declares it
  std::string name;
  std::vector<Draw> inputs;
  Function<float> in_float;
  Function<double> in_double;
  double step;  // of the central differences, or no_differences

  std::string title() const { return operation + ": " + name; }
};

struct Table {
  std::vector<Sample> samples;

  /// f takes the Inputs, in float or in double.
  template <class F>
  void add(const char* operation, const char* name, std::vector<Draw> inputs, F f, double step = 1e-6) {
    samples.push_back({operation, name, std::move(inputs), f, f, step});
  }
};

/// All samples, from the files beside this one.
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
