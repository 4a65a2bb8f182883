#include <algorithm>
#include <cmath>
#include <limits>

#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::vector_loops, detail::zip;

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

Reduced reduce(const char* operation, const Shape& shape, const Axes& axes, KeepDims keep) {
  xt::svector<bool> reduced(std::max<std::size_t>(shape.size(), 1), axes.empty());
  for (std::ptrdiff_t axis : axes) {
    const std::size_t i = detail::normalize_axis_or_scalar(operation, axis, shape.size());
    detail::require(!reduced[i], operation, "expected each axis at most once, got ", axes);
    reduced[i] = true;
  }
  Reduced r{shape, {}, 1, axes, keep};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (reduced[i]) r.count *= std::exchange(r.kept[i], 1);
    if (!reduced[i] || keep == KeepDims::yes) r.out.push_back(r.kept[i]);
  }
  return r;
}

template <class T> Array<T> with_shape(Array<T> x, const Shape& shape) {
  x.reshape(shape);
  return x;
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
  return divided_sum({"sum", "y = Σ x; dx = dy"}, x, reduce("sum", x.shape(), axes, keep), T(1));
}

template <class T> Tensor<T> mean(const Tensor<T>& x, const Axes& axes, KeepDims keep) {
  const Reduced r = reduce("mean", x.shape(), axes, keep);
  detail::require(r.count > 0, "mean", "expected at least one element to average, got shape ", x.shape());
  const T count = static_cast<T>(r.count);
  return divided_sum({"mean", "y = Σ x / c; dx = dy / c", count}, x, r, count);
}

// With N elements reduced into one, c = max(N - correction, 0).
template <class T> Tensor<T> var(const Tensor<T>& x, const Axes& axes, double correction, KeepDims keep) {
  const Reduced r = reduce("var", x.shape(), axes, keep);
  detail::require(r.count > 0, "var", "expected at least one element for the variance, got shape ", x.shape());
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
  const Reduced r = reduce("amax", x.shape(), axes, keep);
  detail::require(r.count > 0, "amax", "expected at least one element for the maximum, got shape ", x.shape());
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

#define INSTANTIATE(T)                                                     \
  template Tensor<T> sum(const Tensor<T>&, const Axes&, KeepDims);         \
  template Tensor<T> mean(const Tensor<T>&, const Axes&, KeepDims);        \
  template Tensor<T> var(const Tensor<T>&, const Axes&, double, KeepDims); \
  template Tensor<T> amax(const Tensor<T>&, const Axes&, KeepDims);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
