/// Printing of tensors and arrays, without a header of xtensor.
#pragma once

#include <iosfwd>

#include "tensor.hpp"

namespace tapegrad {

/// Prints the values, the element type and the shape.
template <class T> std::ostream& operator<<(std::ostream& out, const Tensor<T>& tensor);
/// Prints the values: `std::cout << loss.grad()`.
template <class T> std::ostream& operator<<(std::ostream& out, const Array<T>& array);

}  // namespace tapegrad
