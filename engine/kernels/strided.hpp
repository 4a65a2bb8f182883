/// Walks over strided arrays: broadcasting, transposing, slicing and the reduction of a broadcast are one walk.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "../array/array.hpp"
#include "../array/internal/layout.hpp"
#include "../array/internal/parallel.hpp"
#include "vector_loops.hpp"

namespace tapegrad::detail {

template <std::size_t N> using Offsets = std::array<std::ptrdiff_t, N>;

/// Visits all elements of a shape in row-major order, for N arrays at once, each with its own strides (in elements).
/// Axes that every array steps through evenly are coalesced first; then
/// `body(offsets, count, steps)` is called for each innermost run of `count` elements.
template <std::size_t N, class Body>
void for_each_run(const Shape& shape, const std::array<Strides, N>& strides, Body body) {
  Shape extents;                // merged, outermost first
  std::array<Strides, N> step;  // of the merged axes
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::size_t extent = shape[axis];
    if (extent == 0) return;
    if (extent == 1) continue;
    bool merges = !extents.empty();
    for (std::size_t n = 0; n < N && merges; ++n)
      merges = step[n].back() == strides[n][axis] * static_cast<std::ptrdiff_t>(extent);
    if (merges)
      extents.back() *= extent;
    else
      extents.push_back(extent);
    for (std::size_t n = 0; n < N; ++n) {
      if (merges)
        step[n].back() = strides[n][axis];
      else
        step[n].push_back(strides[n][axis]);
    }
  }

  Offsets<N> offset{}, inner{};
  if (extents.empty()) return body(offset, std::size_t{1}, inner);
  const std::size_t last = extents.size() - 1;
  for (std::size_t n = 0; n < N; ++n) inner[n] = step[n][last];

  Shape index(last, 0);  // over the outer axes, counted up like an odometer
  while (true) {
    body(offset, extents[last], inner);
    std::size_t axis = last;
    while (true) {
      if (axis == 0) return;
      --axis;
      for (std::size_t n = 0; n < N; ++n) offset[n] += step[n][axis];
      if (++index[axis] < extents[axis]) break;
      for (std::size_t n = 0; n < N; ++n) offset[n] -= step[n][axis] * static_cast<std::ptrdiff_t>(extents[axis]);
      index[axis] = 0;
    }
  }
}

/// y[i] = f(x[i]); f may also be a loop, f(x, y, count), such as the vector loops.
template <class Y, class X, class F> Array<Y> map(const Array<X>& x, F f) {
  Array<Y> y(x.shape());
  parallel_for(x.size(), chunks_for(x.size()), [from = x.data(), to = y.data(), f](std::size_t begin, std::size_t end) {
    if constexpr (std::is_invocable_v<const F&, const X*, Y*, std::size_t>)
      f(from + begin, to + begin, end - begin);
    else
      for (std::size_t i = begin; i < end; ++i) to[i] = f(from[i]);
  });
  return y;
}

/// Calls run(x, x_step, y, y_step, z, count) for runs of z's elements, which x and y broadcast to; a step is 1, or 0
/// where an operand's one element serves the whole run.
template <class Z, class X, class Y, class Run>
Array<Z> zip_runs(const char* operation, const Array<X>& x, const Array<Y>& y, Run run) {
  if (x.shape() == y.shape()) {
    Array<Z> z(x.shape());
    parallel_for(z.size(), chunks_for(z.size()),
                 [a = x.data(), b = y.data(), to = z.data(), run](std::size_t begin, std::size_t end) {
                   run(a + begin, 1, b + begin, 1, to + begin, end - begin);
                 });
    return z;
  }
  auto z = uninitialized<Z>(operation, broadcast_shapes(operation, x.shape(), y.shape()));
  Z* to = z.data();
  for_each_run<2>(z.shape(), {broadcast_strides(x.shape(), z.shape()), broadcast_strides(y.shape(), z.shape())},
                  [&](const Offsets<2>& offset, std::size_t count, const Offsets<2>& step) {
                    run(x.data() + offset[0], step[0], y.data() + offset[1], step[1], to, count);
                    to += count;
                  });
  return z;
}

/// z[i] = f(x[i], y[i]) over the shape that both broadcast to.
template <class Z, class X, class Y, class F>
Array<Z> zip(const char* operation, const Array<X>& x, const Array<Y>& y, F f) {
  return zip_runs<Z>(
      operation, x, y,
      [f](const X* a, std::ptrdiff_t a_step, const Y* b, std::ptrdiff_t b_step, Z* to, std::size_t count) {
        if (a_step == 1 && b_step == 1)
          for (std::size_t i = 0; i < count; ++i) to[i] = f(a[i], b[i]);
        else if (b_step == 0)
          for (std::size_t i = 0; i < count; ++i) to[i] = f(a[i], *b);
        else
          for (std::size_t i = 0; i < count; ++i) to[i] = f(*a, b[i]);
      });
}

/// The same with one of the vector loops.
template <class T>
Array<T> zip(const char* operation, const Array<T>& x, const Array<T>& y, const BinaryLoops<T>& loops) {
  return zip_runs<T>(
      operation, x, y,
      [loops](const T* a, std::ptrdiff_t a_step, const T* b, std::ptrdiff_t b_step, T* to, std::size_t count) {
        if (a_step == 1 && b_step == 1)
          loops.runs(a, b, to, count);
        else if (b_step == 0)
          loops.run_number(a, *b, to, count);
        else
          loops.number_run(*a, b, to, count);
      });
}

/// A way of looking at another array's elements: each output element is one element of the source.
struct View {
  Shape shape;
  Strides strides;  // in elements of the source; 0 where elements repeat
  std::ptrdiff_t offset = 0;
};

/// The elements that the view sees, as an array of their own.
template <class T> Array<T> gather(const Array<T>& source, const View& view);

/// Writes the elements to where the view sees them; each place is seen once.
template <class T> void scatter(Array<T>& destination, const Array<T>& elements, const View& view);

/// sum += gradient, each element added where the view saw it: scatter-add, the transpose of gather.
template <class T> void scatter_add(Array<T>& sum, const Array<T>& gradient, const View& view);

/// Of every index the element of source that it names along the axis; along the other axes both are walked together,
/// and the indices may be fewer. Source and indices have equally many axes; a scalar counts as one element along one.
template <class T> Array<T> gather_along(const Array<T>& source, const IntArray& indices, std::size_t axis);

/// Adds each element of the gradient, of the indices' shape, to where gather_along took it from.
template <class T>
void scatter_add_along(Array<T>& sum, const Array<T>& gradient, const IntArray& indices, std::size_t axis);

/// sum += gradient, summed over the axes that sum's shape was broadcast along to become the gradient's.
template <class T> void add_summed(Array<T>& sum, const Array<T>& gradient);

/// The sum of count contiguous elements. Runs of a few hundred are summed in T, their sums in double.
template <class T> T sum_run(const T* x, std::size_t count);

}  // namespace tapegrad::detail
