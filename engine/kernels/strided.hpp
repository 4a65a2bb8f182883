/// Walks over strided arrays: one mechanism for broadcasting, transposing, slicing and reducing a broadcast.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include "../array/array.hpp"
#include "../array/internal/layout.hpp"
#include "../array/internal/parallel.hpp"
#include "instruction_sets.hpp"
#include "vector_loops.hpp"

namespace tapegrad::detail {

/// The max number of terms in a running sum in T. Longer sums add partial sums, to keep their digits.
inline constexpr std::size_t kMaxSumLength = 1024;

/// A simultaneous walk over N arrays of one shape, each with its own strides (in elements).
template <std::size_t N> struct Walk {
  Shape shape;
  std::array<Strides, N> strides;
};

/// The same walk with fewer axes: drops axes of extent 1 and merges adjacent axes contiguous in every array.
template <std::size_t N> Walk<N> coalesced(const Shape& shape, const std::array<Strides, N>& strides) {
  Walk<N> walk;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::size_t extent = shape[axis];
    if (extent == 1) continue;
    bool merges = !walk.shape.empty();
    for (std::size_t n = 0; n < N && merges; ++n)
      merges = walk.strides[n].back() == strides[n][axis] * static_cast<std::ptrdiff_t>(extent);
    if (!merges) walk.shape.push_back(1);
    walk.shape.back() *= extent;
    for (std::size_t n = 0; n < N; ++n) {
      if (!merges) walk.strides[n].push_back(0);
      walk.strides[n].back() = strides[n][axis];
    }
  }
  return walk;
}

/// Visits all elements of a shape in row-major order, for N arrays at once, each with its own strides (in elements):
/// `body(offsets, count, steps)` is called for each innermost run of `count` elements of the coalesced axes.
template <std::size_t N, class Body>
void for_each_run(const Shape& shape, const std::array<Strides, N>& strides, Body body) {
  if (element_count(shape) == 0) return;
  const auto [extents, step] = coalesced(shape, strides);
  std::array<std::ptrdiff_t, N> offset{}, inner{};
  if (extents.empty()) return body(offset, std::size_t{1}, inner);
  const std::size_t last = extents.size() - 1;
  for (std::size_t n = 0; n < N; ++n) inner[n] = step[n][last];

  Shape index(last, 0);  // over the outer axes, counted up like an odometer
  while (true) {
    body(offset, extents[last], inner);
    for (std::size_t axis = last;;) {
      if (axis-- == 0) return;
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
  if constexpr (std::is_invocable_v<const F&, const X*, Y*, std::size_t>)
    parallel_for(x.size(), chunks_for(x.size()),
                 [&](std::size_t begin, std::size_t end) { f(x.data() + begin, y.data() + begin, end - begin); });
  else
    parallel_vectorized(x.size(), [from = x.data(), to = y.data(), f](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) to[i] = f(from[i]);
    });
  return y;
}

/// Partial sums over rows, one per block of rows: (blocks, row...). add(r, sums) adds row r to its block's sums. Each
/// thread gets the rows it has in other loops, so they are in its cache.
template <class T, class Add> Array<T> sums_by_blocks(std::size_t rows, const Shape& row, Add add) {
  const std::size_t size = element_count(row), chunks = chunks_for(rows * size);
  const std::size_t blocks = std::max(chunks, rows / kMaxSumLength + 1);
  Shape shape{blocks};
  shape.insert(shape.end(), row.begin(), row.end());
  Array<T> sums(shape, T(0));
  parallel_for(blocks, chunks, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t r = i * rows / blocks; r < (i + 1) * rows / blocks; ++r) add(r, sums.data() + i * size);
  });
  return sums;
}

/// An operand of a run: consecutive elements (`step` 1) or the same element throughout (`step` 0).
template <class X> struct Operand {
  const X* data;
  std::ptrdiff_t step;
};

/// The common broadcast shape.
inline const Shape& broadcast_all(const char*, const Shape& shape) { return shape; }
template <class... Shapes> Shape broadcast_all(const char* operation, const Shape& first, const Shapes&... others) {
  return broadcast_shapes(operation, first, broadcast_all(operation, others...));
}

/// Calls run(z, count, operands...) for runs of z, the result of broadcasting the arrays x.
template <class Z, class Run, class... X> Array<Z> zip_runs(const char* operation, Run run, const Array<X>&... x) {
  auto z = uninitialized<Z>(operation, broadcast_all(operation, x.shape()...));
  if (((x.shape() == z.shape()) && ...)) {
    parallel_for(z.size(), chunks_for(z.size()), [&](std::size_t begin, std::size_t end) {
      run(z.data() + begin, end - begin, Operand<X>{x.data() + begin, 1}...);
    });
    return z;
  }
  Z* to = z.data();
  for_each_run<sizeof...(X)>(z.shape(), {broadcast_strides(x.shape(), z.shape())...},
                             [&](const auto& offset, std::size_t count, const auto& step) {
                               std::size_t n = 0;  // index of the operand: braces are evaluated from left to right
                               const std::tuple operands{Operand<X>{x.data() + offset[n], step[n++]}...};
                               std::apply([&](const auto&... operand) { run(to, count, operand...); }, operands);
                               to += count;
                             });
  return z;
}

/// Calls body(at...), where at(i) is element i of an operand. Each combination of steps is compiled, and vectorized.
template <class Body> void with_known_steps(const Body& body) { body(); }
template <class Body, class X, class... Others>
void with_known_steps(const Body& body, Operand<X> first, Others... others) {
  const auto with = [&](auto at) { with_known_steps([&](auto... at_others) { body(at, at_others...); }, others...); };
  if (first.step != 0)
    with([data = first.data](std::size_t i) { return data[i]; });
  else
    with([x = *first.data](std::size_t) { return x; });
}

/// z[i] = f(x[i], ...), broadcast.
template <class Z, class F, class... X> Array<Z> zip_all(const char* operation, F f, const Array<X>&... x) {
  const auto run = [f](Z* to, std::size_t count, auto... operands) {
    with_known_steps(
        [=](auto... at) {
          run_vectorized([=] {
            for (std::size_t i = 0; i < count; ++i) to[i] = f(at(i)...);
          });
        },
        operands...);
  };
  return zip_runs<Z>(operation, run, x...);
}

/// z[i] = f(x[i], y[i]), broadcast.
template <class Z, class X, class Y, class F>
Array<Z> zip(const char* operation, const Array<X>& x, const Array<Y>& y, F f) {
  return zip_all<Z>(operation, f, x, y);
}

/// The same with one of the vector loops.
template <class T>
Array<T> zip(const char* operation, const Array<T>& x, const Array<T>& y, const BinaryLoops<T>& loops) {
  const auto run = [loops](T* to, std::size_t count, Operand<T> a, Operand<T> b) {
    if (a.step != 0 && b.step != 0)
      loops.runs(a.data, b.data, to, count);
    else if (b.step == 0)
      loops.run_number(a.data, *b.data, to, count);
    else
      loops.number_run(*a.data, b.data, to, count);
  };
  return zip_runs<T>(operation, run, x, y);
}

/// A strided view: each output element is one element of the source.
struct View {
  Shape shape;
  Strides strides;  // in elements of the source; 0 where elements repeat
  std::ptrdiff_t offset = 0;
};

template <class T> Array<T> gather(const Array<T>& source, const View& view);  ///< Copies the view's elements.

/// Writes the elements through the view, whose destinations must be distinct.
template <class T> void scatter(Array<T>& destination, const Array<T>& elements, const View& view);

/// The transpose of gather: adds the gradient's elements to their sources among sum's `size` elements; long sums in
/// blocks.
template <class T> void scatter_add(T* sum, std::size_t size, const Array<T>& gradient, const View& view);

/// out[i][j] = source[indices[i][j]][j] for axis 0 of two, and so on. Both have the same number of axes; along the
/// other axes the indices may be fewer. A scalar counts as one element along one axis.
template <class T> Array<T> gather_along(const Array<T>& source, const IntArray& indices, std::size_t axis);

/// The transpose of gather_along: adds each element of the gradient to its source. `shape` is sum's.
template <class T>
void scatter_add_along(T* sum, const Shape& shape, const Array<T>& gradient, const IntArray& indices, std::size_t axis);

/// sum += gradient, summed over the axes along which sum's shape was broadcast.
template <class T> void add_summed(Array<T>& sum, const Array<T>& gradient);

/// largest = max(largest, x) over the axes along which largest's shape was broadcast. NaN is larger than any number.
template <class T> void take_largest(Array<T>& largest, const Array<T>& x);

/// The sum of count contiguous elements. Runs of kMaxSumLength are summed in T, their sums in double.
template <class T> T sum_run(const T* x, std::size_t count);

}  // namespace tapegrad::detail
