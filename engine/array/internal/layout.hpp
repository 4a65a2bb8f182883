/// The arithmetic on shapes: axes, broadcasting, sizes, strides. For the library's own sources.
#pragma once

#include <limits>

#include "../array.hpp"
#include "error.hpp"

namespace tapegrad::detail {

using Strides = xt::svector<std::ptrdiff_t, 4>;

/// The axis counted from 0; negative ones count from the end. Throws std::invalid_argument without such an axis.
std::size_t normalize_axis(const char* operation, std::ptrdiff_t axis, std::size_t dimension);

/// The same for operations that take a scalar as one element along one axis.
inline std::size_t normalize_axis_or_scalar(const char* operation, std::ptrdiff_t axis, std::size_t dimension) {
  return normalize_axis(operation, axis, dimension == 0 ? 1 : dimension);
}

/// The last axis, counted from the end, in which two shapes do not broadcast together by NumPy's rules; 0 if they do.
std::ptrdiff_t differing_axis(const Shape& a, const Shape& b);

inline bool broadcast_together(const Shape& a, const Shape& b) { return differing_axis(a, b) == 0; }

inline const Shape& shape_of(const Shape& shape) { return shape; }
template <class X> const Shape& shape_of(const X& x) { return x.shape(); }

/// Throws std::invalid_argument naming `operation` unless two shapes, or tensors, broadcast together.
template <class A, class B> void require_broadcast(const char* operation, const A& a, const B& b) {
  const std::ptrdiff_t axis = differing_axis(shape_of(a), shape_of(b));
  require(axis == 0, operation, "expected shapes that broadcast together, got ", a, " and ", b,
          ": they differ in axis ", axis);
}

/// The shape that both broadcast to. Throws like require_broadcast.
Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b);

bool broadcasts_to(const Shape& from, const Shape& to);  ///< True if `from` broadcasts to exactly `to`.

Shape index_of(std::size_t flat, const Shape& shape);  ///< The index of the element number `flat` in row-major order.

/// True if an array's bytes fit in std::ptrdiff_t. Extents of 0 do not count: strides use the product of the others.
bool addressable(const Shape& shape, std::size_t element_size);

/// Throws std::invalid_argument naming `operation` unless an array of T of this shape can be addressed.
template <class T> void require_addressable(const char* operation, const Shape& shape) {
  require(addressable(shape, sizeof(T)), operation, "expected a shape of at most ",
          std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T), " elements, not counting extents of 0, got ", shape);
}

/// An uninitialized array. For every new shape, since xtensor does not check products. Throws like require_addressable.
template <class T> Array<T> uninitialized(const char* operation, const Shape& shape) {
  require_addressable<T>(operation, shape);
  return Array<T>(shape);
}

/// The same elements in another shape of as many.
template <class T> Array<T> with_shape(Array<T> x, const Shape& shape) {
  x.reshape(shape);
  return x;
}

Strides contiguous_strides(const Shape& shape);  ///< Strides of a row-major array, in elements.

Strides broadcast_strides(const Shape& from, const Shape& to);  ///< Strides to read `from` in the shape `to`.

}  // namespace tapegrad::detail
