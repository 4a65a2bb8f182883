/// The matrix product inside einsum.
#pragma once

#include <string_view>

#include "../../tape/tensor.hpp"

namespace tapegrad::detail {

/// matmul(a, b), with einsum's equation as an argument for observers of the tape, unless it is "".
template <class T> Tensor<T> matmul_for(std::string_view equation, const Tensor<T>& a, const Tensor<T>& b);

}  // namespace tapegrad::detail
