/// The arithmetic on shapes: axes, broadcasting, and where elements lie. For the library's own sources.
#pragma once

#include "../shape.hpp"

namespace tapegrad::detail {

using Strides = xt::svector<std::ptrdiff_t, 4>;

/// The axis as a number from 0: negative ones count from the end. Throws std::invalid_argument naming `operation` when
/// there is no such axis in an array of `dimension` axes.
std::size_t normalize_axis(const char* operation, std::ptrdiff_t axis, std::size_t dimension);

/// NumPy's broadcasting: shapes are aligned at their last axes and axes of extent 1 stretch to the other's extent.
bool broadcast_together(const Shape& a, const Shape& b);

/// The last axis, counted from the end, in which two shapes do not broadcast together; 0 when they do.
std::ptrdiff_t differing_axis(const Shape& a, const Shape& b);

/// The shape that both broadcast to. Throws std::invalid_argument naming `operation` and both shapes.
Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b);

/// The index of the element that is `flat` places behind the first.
Shape index_of(std::size_t flat, const Shape& shape);

/// Whether an array of shape `from` broadcasts to exactly `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

/// Strides, counted in elements, of a row-major array.
Strides contiguous_strides(const Shape& shape);

/// Strides that read an array of shape `from` as if it had the shape `to` that it broadcasts to: 0 where it stretches.
Strides broadcast_strides(const Shape& from, const Shape& to);

}  // namespace tapegrad::detail
