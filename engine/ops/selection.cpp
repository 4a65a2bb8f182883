#include <algorithm>
#include <cmath>
#include <functional>

#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::require, detail::require_in_range;

// An array as rows along an axis; the elements of a row are `step` apart. A scalar is a row of one.
template <class T> struct Rows {
  const T* data;
  std::size_t axis, extent, step, count;

  Rows(const char* operation, const Array<T>& x, std::ptrdiff_t named)
      : data(x.data()), axis(detail::normalize_axis_or_scalar(operation, named, x.dimension())), extent(1), step(1) {
    if (x.dimension() > 0) extent = x.shape()[axis];
    count = extent == 0 ? 0 : x.size() / extent;
    for (std::size_t i = axis + 1; i < x.dimension(); ++i) step *= x.shape()[i];
  }

  // The first element of row i.
  std::size_t first(std::size_t i) const { return i / step * extent * step + i % step; }
  const T* operator[](std::size_t i) const { return data + first(i); }
};

// PyTorch's order: NaN is larger than every number.
template <class T> bool larger(T a, T b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

// The index of the first largest of contiguous elements. Two passes with vectors are faster than one without.
template <class T> std::size_t first_of_largest(const T* x, std::size_t n) {
  const T largest = detail::vector_loops<T>().max(x, n);
  const auto found =
      std::isnan(largest) ? std::find_if(x, x + n, [](T a) { return std::isnan(a); }) : std::find(x, x + n, largest);
  return static_cast<std::size_t>(found - x);
}

// The index of the largest element of every row, the first of equals; the axis keeps extent 1.
template <class T> IntArray indices_of_largest(const char* operation, const Array<T>& x, std::ptrdiff_t axis) {
  const Rows<T> rows(operation, x, axis);
  require(rows.extent > 0, operation, "expected at least one element along axis ", axis, ", got shape ", x.shape());
  Shape shape = x.shape();
  if (!shape.empty()) shape[rows.axis] = 1;
  auto out = detail::uninitialized<std::int64_t>(operation, shape);
  detail::parallel_for(rows.count, detail::chunks_for(x.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const T* row = rows[i];
      std::size_t best = 0;
      if (rows.step == 1)
        best = first_of_largest(row, rows.extent);
      else
        for (std::size_t j = 1; j < rows.extent; ++j)
          if (larger(row[j * rows.step], row[best * rows.step])) best = j;
      out.data()[i] = static_cast<std::int64_t>(best);
    }
  });
  return out;
}

// The shape without an axis. A scalar has no axis to remove.
Shape without_axis(Shape shape, std::size_t axis) {
  if (!shape.empty()) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return shape;
}

// The elements at these indices along the axis, in a shape with the same number of elements. The rule is a scatter-add.
template <class T, class Describe>
Tensor<T> take_along(const Operation& operation, const Tensor<T>& x, std::size_t axis, const IntArray& indices,
                     const Shape& shape, const Describe& describe) {
  Array<T> y = detail::gather_along(x.value(), indices, axis);
  y.reshape(shape);
  return record(
      operation, std::move(y), {x},
      [axis, indices = indices, shape = x.shape()](const Array<T>& dy, auto& dx) {
        detail::scatter_add_along(detail::zeroed_destination(dx[0]), shape, dy, indices, axis);
      },
      describe);
}

}  // namespace

template <class T> Tensor<T> gather(const Tensor<T>& x, std::ptrdiff_t axis, const IntArray& index) {
  const Rows<T> rows("gather", x.value(), axis);
  bool fits = std::max<std::size_t>(x.dimension(), 1) == std::max<std::size_t>(index.dimension(), 1);
  for (std::size_t i = 0; fits && i < std::min(x.dimension(), index.dimension()); ++i)
    fits = i == rows.axis || index.shape()[i] <= x.shape()[i];
  require(fits, "gather", "expected an index with as many axes as ", x, " and no larger extents except along axis ",
          axis, ", got ", index.shape());
  for (std::int64_t i : index)
    require_in_range(i >= 0 && static_cast<std::size_t>(i) < rows.extent, "gather", "expected indices from 0 to ",
                     static_cast<std::ptrdiff_t>(rows.extent) - 1, " along axis ", axis, " of ", x, ", got ", i);
  return take_along({"gather", "y = x[index]; dx = Σ dy at index"}, x, rows.axis, index, index.shape(),
                    [&](auto& arguments) { arguments.add("axis", axis).add("index", index); });
}

template <class T> IntArray argmax(const Array<T>& x, std::ptrdiff_t axis) {
  IntArray indices = indices_of_largest("argmax", x, axis);
  indices.reshape(without_axis(x.shape(), detail::normalize_axis_or_scalar("argmax", axis, x.dimension())));
  return indices;
}

template <class T> ValuesAndIndices<T> max(const Tensor<T>& x, std::ptrdiff_t axis, KeepDims keep) {
  IntArray indices = indices_of_largest("max", x.value(), axis);
  const std::size_t along = detail::normalize_axis_or_scalar("max", axis, x.dimension());
  const Shape shape = keep == KeepDims::yes ? indices.shape() : without_axis(indices.shape(), along);
  Tensor<T> values =
      take_along({"max", "y = max(x); dx = dy at the first of the largest, 0 elsewhere"}, x, along, indices, shape,
                 [&](auto& arguments) { arguments.add("axis", axis).add("keepdims", keep == KeepDims::yes); });
  indices.reshape(shape);
  return {std::move(values), std::move(indices)};
}

template <class T> ValuesAndIndices<T> topk(const Tensor<T>& x, std::size_t k, std::ptrdiff_t axis, bool largest) {
  const Rows<T> rows("topk", x.value(), axis);
  const std::size_t min_k = x.dimension() == 0 ? 1 : 0;
  require_in_range(min_k <= k && k <= rows.extent, "topk", "expected k from ", min_k, " to ", rows.extent,
                   ", the extent of axis ", axis, " of ", x, ", got ", k);
  Shape shape = x.shape();
  if (!shape.empty()) shape[rows.axis] = k;
  auto indices = detail::uninitialized<std::int64_t>("topk", shape);
  const std::size_t chunks = detail::chunks_for(x.size());
  const std::size_t count = k == 0 ? 0 : rows.count;             // of rows to order
  IntArray orders(Shape{count == 0 ? 0 : chunks, rows.extent});  // of a row's elements, for each chunk of rows
  detail::parallel_for(count, chunks, [&](std::size_t begin, std::size_t end, std::size_t chunk) {
    std::int64_t* order = orders.data() + chunk * rows.extent;
    for (std::size_t i = begin; i < end; ++i) {
      const auto at = [row = rows[i], &rows](std::int64_t j) { return row[static_cast<std::size_t>(j) * rows.step]; };
      for (std::size_t j = 0; j < rows.extent; ++j) order[j] = static_cast<std::int64_t>(j);
      std::partial_sort(order, order + k, order + rows.extent, [&](std::int64_t a, std::int64_t b) {
        if (larger(at(a), at(b))) return largest;
        if (larger(at(b), at(a))) return !largest;
        return a < b;
      });
      std::int64_t* out = indices.data() + i / rows.step * k * rows.step + i % rows.step;
      for (std::size_t j = 0; j < k; ++j) out[j * rows.step] = order[j];
    }
  });
  Tensor<T> values =
      take_along({"topk", "y = x[indices]; dx = dy at indices, 0 elsewhere"}, x, rows.axis, indices, shape,
                 [&](auto& arguments) { arguments.add("k", k).add("axis", axis).add("largest", largest); });
  return {std::move(values), std::move(indices)};
}

#define INSTANTIATE(T)                                                          \
  template Tensor<T> gather(const Tensor<T>&, std::ptrdiff_t, const IntArray&); \
  template IntArray argmax(const Array<T>&, std::ptrdiff_t);                    \
  template ValuesAndIndices<T> max(const Tensor<T>&, std::ptrdiff_t, KeepDims); \
  template ValuesAndIndices<T> topk(const Tensor<T>&, std::size_t, std::ptrdiff_t, bool);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
