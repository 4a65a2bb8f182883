/// The inputs of an operation, for record().
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "tensor.hpp"

namespace tapegrad {

/// An input of an operation, held by reference.
template <class T> struct Input {
  const Tensor<T>* tensor;                   ///< the input
  Input(const Tensor<T>& t) : tensor(&t) {}  ///< implicit, for inputs in braces
};

/// The inputs of an operation: tensors in braces, or any number of Inputs.
template <class T> struct Inputs : std::span<const Input<T>> {
  /// Refers to tensors in braces, during the call.
  Inputs(std::initializer_list<Input<T>> inputs) : std::span<const Input<T>>(inputs.begin(), inputs.size()) {}
  Inputs(std::span<const Input<T>> inputs) : std::span<const Input<T>>(inputs) {}     ///< refers to them
  Inputs(const std::vector<Input<T>>& inputs) : std::span<const Input<T>>(inputs) {}  ///< refers to them
};

}  // namespace tapegrad
