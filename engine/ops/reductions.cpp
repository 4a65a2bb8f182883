#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::require, detail::require_in_range, detail::vector_loops, detail::zip, detail::with_shape;

// A reduction's shapes. With the reduced axes as extents of 1, a result broadcasts back to the input's shape: the rules
// below use this form.
struct Reduced {
  Shape kept;
  Shape out;          // of the result: with keepdims like `kept`, otherwise without the reduced axes
  std::size_t count;  // number of elements reduced into one
  Axes axes;          // as passed by the user
  KeepDims keep;

  template <class T> void describe(Arguments<T>& arguments) const {
    if (!axes.empty()) arguments.add("axes", axes);
    arguments.add("keepdims", keep == KeepDims::yes);
  }
};

// `purpose` is what a reduction needs an element for, if it needs one.
Reduced plan_reduction(const char* operation, const Shape& shape, const Axes& axes, KeepDims keep,
                       const char* purpose = nullptr) {
  xt::svector<bool> reduced(std::max<std::size_t>(shape.size(), 1), axes.empty());
  for (std::ptrdiff_t axis : axes) {
    const std::size_t i = detail::normalize_axis_or_scalar(operation, axis, shape.size());
    require(!reduced[i], operation, "expected each axis at most once, got ", axes);
    reduced[i] = true;
  }
  Reduced r{shape, {}, 1, axes, keep};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (reduced[i]) r.count *= std::exchange(r.kept[i], 1);
    if (!reduced[i] || keep == KeepDims::yes) r.out.push_back(r.kept[i]);
  }
  require(r.count > 0 || !purpose, operation, "expected at least one element ", purpose, ", got shape ", shape);
  return r;
}

// Returns shape r.kept.
template <class T> Array<T> summed(const char* operation, const Array<T>& x, const Reduced& r) {
  auto sum = detail::uninitialized<T>(operation, r.kept);
  sum.fill(T(0));
  detail::add_summed(sum, x);
  return sum;
}

// y = sum(x) / divisor over the reduced axes, dx = dy / divisor, broadcast over them
template <class T> Tensor<T> divided_sum(const Operation& operation, const Tensor<T>& x, const Reduced& r, T divisor) {
  Array<T> y = summed(operation.name, x.value(), r);
  if (divisor != 1) y /= divisor;
  y.reshape(r.out);
  return record(
      operation, std::move(y), {x},
      [kept = r.kept, shape = x.shape(), divisor](const Array<T>& dy, auto& dx) {
        const Array<T> each = with_shape<T>(dy / divisor, kept);
        dx[0] += detail::gather(each, {shape, detail::broadcast_strides(kept, shape)});
      },
      [&](auto& arguments) { r.describe(arguments); });
}

}  // namespace

template <class T> Tensor<T> sum(const Tensor<T>& x, const Axes& axes, KeepDims keep) {
  return divided_sum({"sum", "y = Σ x; dx = dy"}, x, plan_reduction("sum", x.shape(), axes, keep), T(1));
}

template <class T> Tensor<T> mean(const Tensor<T>& x, const Axes& axes, KeepDims keep) {
  const Reduced r = plan_reduction("mean", x.shape(), axes, keep, "to average");
  const T count = static_cast<T>(r.count);
  return divided_sum({"mean", "y = Σ x / c; dx = dy / c", count}, x, r, count);
}

// With N elements reduced into one, c = max(N - correction, 0).
template <class T> Tensor<T> var(const Tensor<T>& x, const Axes& axes, double correction, KeepDims keep) {
  const Reduced r = plan_reduction("var", x.shape(), axes, keep, "for the variance");
  const auto& minus = vector_loops<T>().minus;
  const auto sums = [&](const Array<T>& a) { return summed("var", a, r); };
  const T count = static_cast<T>(r.count), divisor = static_cast<T>(std::max(double(r.count) - correction, 0.0));
  Array<T> centered = zip<T>("var", x.value(), sums(x.value()) / count, minus);
  // The mean of large numbers is rounded. Subtracting the remaining mean corrects the variance of nearly equal ones.
  centered = zip<T>("var", centered, sums(centered) / count, minus);
  Array<T> y = sums(zip<T>("var", centered, centered, vector_loops<T>().times)) / divisor;
  y.reshape(r.out);
  return record(
      {"var", "y = Σ (x − mean(x))² / c; dx = 2 (x − mean(x)) ⊙ dy / c", divisor}, std::move(y), {x},
      [centered = std::move(centered), kept = r.kept, divisor](const Array<T>& dy, auto& dx) {
        const Array<T> scaled = with_shape<T>(dy * (2 / divisor), kept);
        dx[0] += zip<T>("var", centered, scaled, vector_loops<T>().times);
      },
      [&](auto& arguments) {
        r.describe(arguments);
        arguments.add("correction", correction);
      });
}

// Elements that tie for the maximum share its gradient.
template <class T> Tensor<T> amax(const Tensor<T>& x, const Axes& axes, KeepDims keep) {
  const Reduced r = plan_reduction("amax", x.shape(), axes, keep, "for the maximum");
  auto y = detail::uninitialized<T>("amax", r.kept);
  y.fill(-std::numeric_limits<T>::infinity());
  detail::take_largest(y, x.value());
  y.reshape(r.out);
  return record(
      {"amax", "y = max(x); dx = dy ⊙ [x = y] / Σ [x = y]"}, std::move(y), {x},
      [x = x.shared_value(), kept = r.kept](const Array<T>& dy, auto& dx, const Array<T>& y) {
        Array<T> share = zip<T>("amax", *x, with_shape(y, kept), [](T a, T b) { return T(a == b); });
        Array<T> tie_counts(kept, T(0));
        detail::add_summed(tie_counts, share);
        const Array<T> each = with_shape<T>(dy, kept) / tie_counts;
        dx[0] += zip<T>("amax", share, each, [](T is_max, T d) { return is_max != 0 ? d : T(0); });
      },
      [&](auto& arguments) { r.describe(arguments); });
}

// ---- selection along an axis ----------------------------------------------------------------------------------------

namespace {

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
  const T* operator[](std::size_t i) const { return data + i / step * extent * step + i % step; }
};

// PyTorch's order: NaN is larger than every number.
template <class T> bool larger(T a, T b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

// The index of the first largest of contiguous elements. Two passes with vectors are faster than one without.
template <class T> std::size_t first_of_largest(const T* x, std::size_t n) {
  const T largest = vector_loops<T>().max(x, n);
  const auto found =
      std::isnan(largest) ? std::find_if(x, x + n, [](T a) { return std::isnan(a); }) : std::find(x, x + n, largest);
  return static_cast<std::size_t>(found - x);
}

// The index of the largest element of every row, the first of equals; the axis keeps extent 1.
template <class T> IntArray indices_of_largest(const char* operation, const Array<T>& x, std::ptrdiff_t axis) {
  const Rows<T> rows(operation, x, axis);
  require(rows.extent > 0, operation, "expected at least one element along axis ", axis, ", got shape ", x.shape());
  auto out =
      detail::uninitialized<std::int64_t>(operation, plan_reduction(operation, x.shape(), axis, KeepDims::yes).out);
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
  return with_shape(indices_of_largest("argmax", x, axis), plan_reduction("argmax", x.shape(), axis, KeepDims::no).out);
}

template <class T> ValuesAndIndices<T> max(const Tensor<T>& x, std::ptrdiff_t axis, KeepDims keep) {
  IntArray indices = indices_of_largest("max", x.value(), axis);
  const std::size_t along = detail::normalize_axis_or_scalar("max", axis, x.dimension());
  const Shape shape = plan_reduction("max", x.shape(), axis, keep).out;
  Tensor<T> values =
      take_along({"max", "y = max(x); dx = dy at the first of the largest, 0 elsewhere"}, x, along, indices, shape,
                 [&](auto& arguments) { arguments.add("axis", axis).add("keepdims", keep == KeepDims::yes); });
  return {std::move(values), with_shape(std::move(indices), shape)};
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
      std::iota(order, order + rows.extent, std::int64_t{0});
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
  template Tensor<T> sum(const Tensor<T>&, const Axes&, KeepDims);              \
  template Tensor<T> mean(const Tensor<T>&, const Axes&, KeepDims);             \
  template Tensor<T> var(const Tensor<T>&, const Axes&, double, KeepDims);      \
  template Tensor<T> amax(const Tensor<T>&, const Axes&, KeepDims);             \
  template Tensor<T> gather(const Tensor<T>&, std::ptrdiff_t, const IntArray&); \
  template IntArray argmax(const Array<T>&, std::ptrdiff_t);                    \
  template ValuesAndIndices<T> max(const Tensor<T>&, std::ptrdiff_t, KeepDims); \
  template ValuesAndIndices<T> topk(const Tensor<T>&, std::size_t, std::ptrdiff_t, bool);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
