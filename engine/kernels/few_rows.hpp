/// What the loops for products with a row or a few on the left are given.
#pragma once

#include <cstddef>

#include "../array/bfloat16.hpp"

namespace tapegrad::detail {

/// c = alpha a b + beta c, or alpha a b^T + beta c, for an `a` of few rows; c is not read when beta is 0. The rows of
/// each begin a stride apart. b's numbers are of type B.
template <class T, class B = T> struct FewRows {
  const T* a;
  const B* b;
  T* c;
  std::size_t a_stride, b_stride, c_stride;
  std::size_t rows, inner, columns;  // of a, of both, of the product
  T alpha, beta;
};

}  // namespace tapegrad::detail
