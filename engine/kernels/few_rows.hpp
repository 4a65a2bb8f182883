/// Arguments of the loops for products with a few rows on the left.
#pragma once

#include <cstddef>

#include "../array/bfloat16.hpp"

namespace tapegrad::detail {

/// c = alpha a b + beta c, or alpha a b^T + beta c, for an `a` of few rows; c is not read if beta is 0.
template <class T, class B = T> struct FewRows {
  const T* a;
  const B* b;
  T* c;
  std::size_t a_stride, b_stride, c_stride;
  std::size_t rows, inner, columns;  // of a, of both, of the product
  T alpha, beta;
};

}  // namespace tapegrad::detail
