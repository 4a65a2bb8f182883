#include "strided.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "../array/internal/error.hpp"

namespace tapegrad::detail {

namespace {

// One of two arrays walked together. An empty one has no memory, so offsets are only added within runs.
template <class T> struct Side {
  T* data;
  const Strides& strides;
  std::ptrdiff_t offset;
};

// for_each_run over two arrays on several threads. Cuts `to` along its first axis with distinct elements, so no two
// threads write to the same element, and the order of writes is independent of the number of threads.
template <class T, class Body>
void for_each_run_in_parallel(const Shape& shape, const Side<T>& to, const Side<const T>& from, Body body) {
  std::size_t axis = 0;
  while (axis < shape.size() && (shape[axis] < 2 || to.strides[axis] == 0)) ++axis;
  const std::size_t extent = axis < shape.size() ? shape[axis] : 1;
  // Neighbors stay on one thread in runs of at least 128: shorter runs gain little.
  const std::size_t max_chunks = axis + 1 < shape.size() ? extent : (extent + 127) / 128;
  const std::size_t chunks = std::min(max_chunks, chunks_for(element_count(shape)));
  parallel_for(extent, chunks, [&](std::size_t begin, std::size_t end) {
    Shape part = shape;
    std::ptrdiff_t to_first = to.offset, from_first = from.offset;
    if (axis < shape.size()) {
      part[axis] = end - begin;
      to_first += static_cast<std::ptrdiff_t>(begin) * to.strides[axis];
      from_first += static_cast<std::ptrdiff_t>(begin) * from.strides[axis];
    }
    for_each_run<2>(part, {to.strides, from.strides}, [&](const auto& offset, std::size_t count, const auto& step) {
      body(to.data + (to_first + offset[0]), from.data + (from_first + offset[1]), count, step[0], step[1]);
    });
  });
}

// to = from
template <class T>
void copy_run(T* to, const T* from, std::size_t count, std::ptrdiff_t to_step, std::ptrdiff_t from_step) {
  if (to_step == 1 && from_step == 1)
    std::copy_n(from, count, to);
  else if (to_step == 1 && from_step == 0)
    std::fill_n(to, count, *from);
  else
    for (; count > 0; --count, to += to_step, from += from_step) *to = *from;
}

// to += from
template <class T>
void add_run(T* to, const T* from, std::size_t count, std::ptrdiff_t to_step, std::ptrdiff_t from_step) {
  if (to_step == 1 && from_step == 1)
    vector_loops<T>().add(from, to, count);
  else if (to_step == 0 && from_step == 1)
    *to += sum_run(from, count);
  else
    for (; count > 0; --count, to += to_step, from += from_step) *to += *from;
}

// sum += x
template <class T> void add_elements(const Array<T>& x, T* sum) {
  parallel_for(x.size(), chunks_for(x.size()), [&](std::size_t begin, std::size_t end) {
    vector_loops<T>().add(x.data() + begin, sum + begin, end - begin);
  });
}

// to = max(to, from)
template <class T>
void take_larger_run(T* to, const T* from, std::size_t count, std::ptrdiff_t to_step, std::ptrdiff_t from_step) {
  const auto larger = [](T a, T b) { return a > b || std::isnan(a) ? a : b; };
  if (to_step == 1 && from_step == 1)
    run_vectorized([=] {
      for (std::size_t i = 0; i < count; ++i) to[i] = larger(from[i], to[i]);
    });
  else if (to_step == 0 && from_step == 1)
    *to = larger(vector_loops<T>().max(from, count), *to);
  else
    for (; count > 0; --count, to += to_step, from += from_step) *to = larger(*from, *to);
}

// (..., R, C) as (..., strips, R, width)
View strips_of(View view, std::size_t strips, std::size_t width) {
  view.shape.insert(view.shape.end() - 2, {strips});
  view.shape.back() = width;
  view.strides.insert(view.strides.end() - 2, {view.strides.back() * static_cast<std::ptrdiff_t>(width)});
  return view;
}

// The last axis from an index onward.
View columns_from(View view, std::size_t first) {
  if (first == 0) return view;
  view.offset += static_cast<std::ptrdiff_t>(first) * view.strides.back();
  view.shape.back() -= first;
  return view;
}

// An axis to cut in blocks, for sums of more than kMaxSumLength slices. Never the last axis: sum_run sums its runs.
struct Cut {
  std::size_t axis, block;
};

std::optional<Cut> make_cut(const Walk<2>& walk) {
  std::size_t terms = 1;  // of each sum
  std::optional<Cut> outermost;
  for (std::size_t axis = walk.shape.size(); axis-- > 0;) {
    if (axis + 1 == walk.shape.size() || walk.strides[0][axis] != 0 || walk.shape[axis] == 1) continue;
    outermost = Cut{axis, std::max<std::size_t>(kMaxSumLength / terms, 1)};
    terms *= walk.shape[axis];
  }
  return terms > kMaxSumLength ? outermost : std::nullopt;
}

// sum += x along the walk from an offset; long sums add partial sums.
template <class T> void add_slices(T* sum, std::size_t size, std::ptrdiff_t offset, const T* x, const Walk<2>& walk) {
  const std::optional<Cut> cut = make_cut(walk);
  if (!cut)
    return for_each_run_in_parallel<T>(walk.shape, {sum, walk.strides[0], offset}, {x, walk.strides[1], 0}, add_run<T>);
  Array<T> partial(Shape{size});
  Walk<2> part = walk;
  for (std::size_t first = 0; first < walk.shape[cut->axis]; first += cut->block) {
    part.shape[cut->axis] = std::min(cut->block, walk.shape[cut->axis] - first);
    partial.fill(T(0));
    add_slices(partial.data(), size, offset, x + static_cast<std::ptrdiff_t>(first) * walk.strides[1][cut->axis], part);
    add_elements(partial, sum);
  }
}

Shape with_an_axis(const Shape& shape) { return shape.empty() ? Shape{1} : shape; }

// Walks over an array and indices along an axis: visits the elements of index 0; index i is i * apart further.
struct AlongAxis {
  Strides strides;
  std::ptrdiff_t apart;

  AlongAxis(const Shape& shape, std::size_t axis) : strides(contiguous_strides(with_an_axis(shape))) {
    apart = std::exchange(strides[axis], 0);
  }
};

}  // namespace

template <class T> T sum_run(const T* x, std::size_t count) {
  const VectorLoops<T>& loops = vector_loops<T>();
  double total = 0;
  for (; count > kMaxSumLength; x += kMaxSumLength, count -= kMaxSumLength) total += loops.sum(x, kMaxSumLength);
  return static_cast<T>(total + loops.sum(x, count));
}

template <class T> Array<T> gather(const Array<T>& source, const View& view) {
  Array<T> out(view.shape);
  const auto copy = [&](const View& to, const View& from) {
    for_each_run_in_parallel<T>(to.shape, {out.data(), to.strides, to.offset},
                                {source.data(), from.strides, from.offset}, copy_run<T>);
  };
  const View whole{view.shape, contiguous_strides(view.shape), 0};
  // If neighbors in a column are neighbors in the source, as in a transpose, columns are copied in strips as wide as a
  // cache line, (..., R, C) as (..., C / strip, R, strip): each line read serves several rows.
  constexpr std::size_t kStrip = 64 / sizeof(T);
  const std::size_t axes = view.shape.size();
  const bool by_columns = axes >= 2 && view.strides[axes - 2] == 1 && view.strides[axes - 1] != 1;
  const std::size_t strips = by_columns ? view.shape.back() / kStrip : 0;
  if (strips > 0) copy(strips_of(whole, strips, kStrip), strips_of(view, strips, kStrip));
  const std::size_t done = strips * kStrip;
  copy(columns_from(whole, done), columns_from(view, done));
  return out;
}

template <class T> void scatter(Array<T>& destination, const Array<T>& elements, const View& view) {
  for_each_run_in_parallel<T>(view.shape, {destination.data(), view.strides, view.offset},
                              {elements.data(), contiguous_strides(view.shape), 0}, copy_run<T>);
}

template <class T> void scatter_add(T* sum, std::size_t size, const Array<T>& gradient, const View& view) {
  const Strides from = contiguous_strides(view.shape);
  if (gradient.size() > kMaxSumLength)
    return add_slices(sum, size, view.offset, gradient.data(), coalesced<2>(view.shape, {view.strides, from}));
  for_each_run_in_parallel<T>(view.shape, {sum, view.strides, view.offset}, {gradient.data(), from, 0}, add_run<T>);
}

template <class T> Array<T> gather_along(const Array<T>& source, const IntArray& indices, std::size_t axis) {
  Array<T> out(indices.shape());
  const AlongAxis along(source.shape(), axis);
  const Shape shape = with_an_axis(indices.shape());
  for_each_run_in_parallel<T>(shape, {out.data(), contiguous_strides(shape), 0}, {source.data(), along.strides, 0},
                              [&](T* to, const T* from, std::size_t count, std::ptrdiff_t, std::ptrdiff_t step) {
                                const std::int64_t* index = indices.data() + (to - out.data());
                                for (std::size_t i = 0; i < count; ++i, from += step)
                                  to[i] = from[index[i] * along.apart];
                              });
  return out;
}

template <class T>
void scatter_add_along(T* sum, const Shape& shape, const Array<T>& gradient, const IntArray& indices,
                       std::size_t axis) {
  const AlongAxis along(shape, axis);
  const Shape walked = with_an_axis(indices.shape());
  for_each_run_in_parallel<T>(walked, {sum, along.strides, 0}, {gradient.data(), contiguous_strides(walked), 0},
                              [&](T* to, const T* from, std::size_t count, std::ptrdiff_t step, std::ptrdiff_t) {
                                const std::int64_t* index = indices.data() + (from - gradient.data());
                                for (std::size_t i = 0; i < count; ++i, to += step)
                                  to[index[i] * along.apart] += from[i];
                              });
}

template <class T> void add_summed(Array<T>& sum, const Array<T>& gradient) {
  if (sum.shape() == gradient.shape()) return add_elements(gradient, sum.data());
  require_usage(broadcasts_to(sum.shape(), gradient.shape()), "backward", "expected a gradient of shape ", sum.shape(),
                " or one that it broadcasts to, got ", gradient.shape());
  scatter_add(sum.data(), sum.size(), gradient, {gradient.shape(), broadcast_strides(sum.shape(), gradient.shape())});
}

template <class T> void take_largest(Array<T>& largest, const Array<T>& x) {
  for_each_run_in_parallel<T>(x.shape(), {largest.data(), broadcast_strides(largest.shape(), x.shape()), 0},
                              {x.data(), contiguous_strides(x.shape()), 0}, take_larger_run<T>);
}

#define INSTANTIATE(T)                                                                              \
  template Array<T> gather_along(const Array<T>&, const IntArray&, std::size_t);                    \
  template void scatter_add_along(T*, const Shape&, const Array<T>&, const IntArray&, std::size_t); \
  template void take_largest(Array<T>&, const Array<T>&);                                           \
  template T sum_run(const T*, std::size_t);                                                        \
  template Array<T> gather(const Array<T>&, const View&);                                           \
  template void scatter(Array<T>&, const Array<T>&, const View&);                                   \
  template void scatter_add(T*, std::size_t, const Array<T>&, const View&);                         \
  template void add_summed(Array<T>&, const Array<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad::detail
