/// The arithmetic on shapes: axes, broadcasting, sizes, and where elements lie. For the library's own sources.
#pragma once

#include <limits>

#include "../shape.hpp"
#include "error.hpp"

namespace tapegrad::detail {

using Strides = xt::svector<std::ptrdiff_t, 4>;

/// The axis as a number from 0: negative ones count from the end. Throws std::invalid_argument naming `operation` when
/// there is no such axis in an array of `dimension` axes.
std::size_t normalize_axis(const char* operation, std::ptrdiff_t axis, std::size_t dimension);

/// The same for operations over a named axis, to which a scalar is as good as one element along one axis: 0 for a
/// scalar's axes 0 and -1.
inline std::size_t normalize_axis_or_scalar(const char* operation, std::ptrdiff_t axis, std::size_t dimension) {
  return normalize_axis(operation, axis, dimension == 0 ? 1 : dimension);
}

/// NumPy's broadcasting: shapes are aligned at their last axes and axes of extent 1 stretch to the other's extent.
bool broadcast_together(const Shape& a, const Shape& b);

/// The last axis, counted from the end, in which two shapes do not broadcast together; 0 when they do.
std::ptrdiff_t differing_axis(const Shape& a, const Shape& b);

inline const Shape& shape_of(const Shape& shape) { return shape; }
template <class X> const Shape& shape_of(const X& x) { return x.shape(); }

/// Throws std::invalid_argument naming `operation` and both, unless they broadcast together. a and b are shapes, or
/// tensors, which errors call by their names.
template <class A, class B> void require_broadcast(const char* operation, const A& a, const B& b) {
  const std::ptrdiff_t axis = differing_axis(shape_of(a), shape_of(b));
  require(axis == 0, operation, "expected shapes that broadcast together, got ", a, " and ", b,
          ": they differ in axis ", axis);
}

/// The shape that both broadcast to. Throws as require_broadcast does.
Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b);

/// The index of the element that is `flat` places behind the first.
Shape index_of(std::size_t flat, const Shape& shape);

/// Whether an array of shape `from` broadcasts to exactly `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

/// Whether an array of this shape can be addressed: the bytes from one of its elements to another are counted by
/// std::ptrdiff_t. Extents of 0 do not excuse the others, whose product strides and other shapes are made of.
bool addressable(const Shape& shape, std::size_t element_size);

/// Throws std::invalid_argument naming `operation` unless an array of T of this shape can be addressed.
template <class T> void require_addressable(const char* operation, const Shape& shape) {
  require(addressable(shape, sizeof(T)), operation, "expected a shape of at most ",
          std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T), " elements, other extents than 0 multiplied, got ",
          shape);
}

/// An array for a result whose elements are all still to be written. Whatever shape is made of numbers, or of several
/// arrays' extents, becomes an array here: xtensor multiplies extents without asking whether the product wraps around.
/// Throws std::invalid_argument naming `operation` when it would.
template <class T> Array<T> uninitialized(const char* operation, const Shape& shape) {
  require_addressable<T>(operation, shape);
  return Array<T>(shape);
}

/// Strides, counted in elements, of a row-major array.
Strides contiguous_strides(const Shape& shape);

/// Strides that read an array of shape `from` as if it had the shape `to` that it broadcasts to: 0 where it stretches.
Strides broadcast_strides(const Shape& from, const Shape& to);

}  // namespace tapegrad::detail
