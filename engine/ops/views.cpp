#include <algorithm>
#include <functional>

#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::contiguous_strides, detail::normalize_axis, detail::normalize_axis_or_scalar, detail::require,
    detail::View;

// The operations below differ only in the view: the forward pass is a gather, the rule a scatter-add.
template <class T, class Describe>
Tensor<T> viewed(const Operation& operation, const Tensor<T>& x, View view, const Describe& describe) {
  detail::require_addressable<T>(operation.name, view.shape);
  Array<T> y = detail::gather(x.value(), view);
  auto rule = [view = std::move(view)](const Array<T>& dy, auto& dx) {
    detail::scatter_add(detail::zeroed_destination(dx[0]), dx[0].size(), dy, view);
  };
  return record(operation, std::move(y), {x}, std::move(rule), describe);
}

template <class T> View whole(const Tensor<T>& x) { return {x.shape(), contiguous_strides(x.shape())}; }

// The list with `item` inserted before index i.
template <class List> List inserted(List list, std::size_t i, typename List::value_type item) {
  list.push_back(item);
  std::rotate(list.begin() + static_cast<std::ptrdiff_t>(i), list.end() - 1, list.end());
  return list;
}

// The same elements in the same order with another shape.
template <class T, class Describe = detail::NoArguments>
Tensor<T> reshaped(const char* operation, const Tensor<T>& x, const Shape& shape, const Describe& describe = {}) {
  return record(
      {operation, "y = reshape(x); dx = reshape(dy)"}, detail::with_shape(x.value(), shape), {x},
      [before = x.shape()](const Array<T>& dy, auto& dx) { dx[0] += detail::with_shape(dy, before); }, describe);
}

template <class T, class Describe>
Tensor<T> narrowed(const char* operation, const Tensor<T>& x, std::size_t axis, std::size_t start, std::size_t length,
                   const Describe& describe) {
  View view = whole(x);
  view.shape[axis] = length;
  view.offset = static_cast<std::ptrdiff_t>(start) * view.strides[axis];
  return viewed({operation, "y = x[range]; dx = dy at range, 0 elsewhere"}, x, std::move(view), describe);
}

// Keeps the elements of the last two axes if keep(column - row, diagonal); the others become 0.
template <class T, class Keep>
Tensor<T> triangle(const Operation& operation, const Tensor<T>& x, std::ptrdiff_t diagonal, Keep keep) {
  require(x.dimension() >= 2, operation.name, "expected at least two axes, got shape ", x.shape());
  const auto kept = [keep, diagonal](const Array<T>& a) {
    const std::size_t rows = a.shape()[a.dimension() - 2], columns = a.shape().back();
    Array<T> out(a.shape());
    for (std::size_t first = 0; first < a.size(); first += columns) {
      const auto row = static_cast<std::ptrdiff_t>(first / columns % rows);
      for (std::size_t i = 0; i < columns; ++i)
        out.data()[first + i] = keep(static_cast<std::ptrdiff_t>(i) - row, diagonal) ? a.data()[first + i] : T(0);
    }
    return out;
  };
  return record(
      operation, kept(x.value()), {x}, [kept](const Array<T>& dy, auto& dx) { dx[0] += kept(dy); },
      [diagonal](auto& arguments) { arguments.add("diagonal", diagonal); });
}

// Describes an axis.
auto along(std::ptrdiff_t axis) {
  return [axis](auto& arguments) { arguments.add("axis", axis); };
}

}  // namespace

template <class T> Tensor<T> transpose(const Tensor<T>& x, std::ptrdiff_t axis0, std::ptrdiff_t axis1) {
  const std::size_t i = normalize_axis_or_scalar("transpose", axis0, x.dimension());
  const std::size_t j = normalize_axis_or_scalar("transpose", axis1, x.dimension());
  View view = whole(x);
  if (i != j) {
    std::swap(view.shape[i], view.shape[j]);
    std::swap(view.strides[i], view.strides[j]);
  }
  return viewed({"transpose", "y = xᵀ; dx = dyᵀ"}, x, std::move(view),
                [&](auto& arguments) { arguments.add("axis0", axis0).add("axis1", axis1); });
}

template <class T> Tensor<T> permute(const Tensor<T>& x, const Axes& axes) {
  const View before = whole(x);
  View view = before;
  std::vector<bool> seen(x.dimension());
  bool all_once = axes.size() == x.dimension();
  for (std::size_t i = 0; i < axes.size() && all_once; ++i) {
    const std::size_t from = normalize_axis("permute", axes[i], x.dimension());
    all_once = !seen[from];
    seen[from] = true;
    view.shape[i] = before.shape[from];
    view.strides[i] = before.strides[from];
  }
  require(all_once, "permute", "expected each axis of shape ", x.shape(), " once, got axes ", axes);
  return viewed({"permute", "y = permute(x); dx = dy permuted back"}, x, std::move(view),
                [&](auto& arguments) { arguments.add("axes", axes); });
}

template <class T> Tensor<T> reshape(const Tensor<T>& x, const Extents& shape) {
  const auto inferred = std::ranges::find(shape, -1);
  Shape out;
  for (std::ptrdiff_t extent : shape) out.push_back(extent == -1 ? 1 : static_cast<std::size_t>(extent));
  bool fits = std::ranges::all_of(shape, [](auto extent) { return extent >= -1; }) &&
              std::ranges::count(shape, -1) <= 1 && detail::addressable(out, sizeof(T));
  if (fits && inferred != shape.end()) {
    const std::size_t known = element_count(out);
    fits = known != 0;
    if (fits) out[static_cast<std::size_t>(inferred - shape.begin())] = x.size() / known;
  }
  require(fits && element_count(out) == x.size(), "reshape", "expected a shape for the ", x.size(),
          " elements of shape ", x.shape(), ", at most one extent -1; got ", shape);
  return reshaped("reshape", x, out, [&](auto& arguments) { arguments.add("shape", shape); });
}

template <class T> Tensor<T> unsqueeze(const Tensor<T>& x, std::ptrdiff_t axis) {
  const std::size_t i = normalize_axis("unsqueeze", axis, x.dimension() + 1);
  return reshaped("unsqueeze", x, inserted(x.shape(), i, 1), along(axis));
}

template <class T> Tensor<T> squeeze(const Tensor<T>& x) {
  Shape shape;
  for (std::size_t extent : x.shape())
    if (extent != 1) shape.push_back(extent);
  return reshaped("squeeze", x, shape);
}

template <class T> Tensor<T> squeeze(const Tensor<T>& x, std::ptrdiff_t axis) {
  const std::size_t i = normalize_axis_or_scalar("squeeze", axis, x.dimension());
  Shape shape = x.shape();
  if (!shape.empty() && shape[i] == 1) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i));
  return reshaped("squeeze", x, shape, along(axis));
}

template <class T> Tensor<T> expand(const Tensor<T>& x, const Extents& shape) {
  const std::size_t lead = shape.size() - std::min(shape.size(), x.dimension());
  bool fits = shape.size() >= x.dimension();
  Shape out(shape.size());
  for (std::size_t i = 0; i < shape.size() && fits; ++i) {
    fits = shape[i] >= 0 || (shape[i] == -1 && i >= lead);
    if (fits) out[i] = shape[i] == -1 ? x.shape()[i - lead] : static_cast<std::size_t>(shape[i]);
  }
  require(fits && detail::broadcasts_to(x.shape(), out), "expand", "expected a shape that ", x.shape(),
          " broadcasts to, got ", shape);
  return viewed({"expand", "y = expand(x); dx = Σ dy over the copies"}, x,
                {out, detail::broadcast_strides(x.shape(), out)},
                [&](auto& arguments) { arguments.add("shape", shape); });
}

template <class T> Tensor<T> repeat(const Tensor<T>& x, const IntList& repeats) {
  require(repeats.size() >= x.dimension() && std::ranges::all_of(repeats, [](auto count) { return count >= 0; }),
          "repeat", "expected a count of at least 0 for each axis of shape ", x.shape(), ", got ", repeats);
  // Splits each axis in two, copies and elements; stride 0 along the copies repeats x.
  const std::size_t lead = repeats.size() - x.dimension();
  const View before = whole(x);
  View view;
  Shape shape;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const auto copies = static_cast<std::size_t>(repeats[i]);
    const std::size_t extent = i < lead ? 1 : before.shape[i - lead];
    view.shape.push_back(copies);
    view.strides.push_back(0);
    view.shape.push_back(extent);
    view.strides.push_back(i < lead ? 0 : before.strides[i - lead]);
    shape.push_back(copies * extent);
  }
  const auto describe = [&](auto& arguments) { arguments.add("repeats", repeats); };
  return reshaped("repeat",
                  viewed({"repeat", "y = repeat(x); dx = Σ dy over the copies"}, x, std::move(view), describe), shape);
}

template <class T> Tensor<T> repeat_interleave(const Tensor<T>& x, std::size_t repeats, std::ptrdiff_t axis) {
  const std::size_t i = normalize_axis("repeat_interleave", axis, x.dimension());
  const View before = whole(x);  // adds an axis of stride 0 for the copies after axis i
  View view{inserted(before.shape, i + 1, repeats), inserted(before.strides, i + 1, 0)};
  Shape shape = x.shape();
  shape[i] *= repeats;
  const auto describe = [&](auto& arguments) { arguments.add("repeats", repeats).add("axis", axis); };
  return reshaped(
      "repeat_interleave",
      viewed({"repeat_interleave", "y = repeat(x); dx = Σ dy over the copies"}, x, std::move(view), describe), shape);
}

template <class T> Tensor<T> select(const Tensor<T>& x, std::ptrdiff_t axis, std::ptrdiff_t index) {
  const std::size_t i = normalize_axis("select", axis, x.dimension());
  const auto extent = static_cast<std::ptrdiff_t>(x.shape()[i]);
  detail::require_in_range(-extent <= index && index < extent, "select", "expected an index into axis ", axis,
                           " of shape ", x.shape(), ", got ", index);
  View view = whole(x);
  view.offset = (index < 0 ? index + extent : index) * view.strides[i];
  view.shape.erase(view.shape.begin() + static_cast<std::ptrdiff_t>(i));
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(i));
  return viewed({"select", "y = x[index]; dx = dy at index, 0 elsewhere"}, x, std::move(view),
                [&](auto& arguments) { arguments.add("axis", axis).add("index", index); });
}

template <class T> Tensor<T> narrow(const Tensor<T>& x, std::ptrdiff_t axis, std::ptrdiff_t start, std::size_t length) {
  const std::size_t i = normalize_axis("narrow", axis, x.dimension());
  const std::size_t extent = x.shape()[i];
  const std::ptrdiff_t first = start < 0 ? start + static_cast<std::ptrdiff_t>(extent) : start;
  detail::require_in_range(first >= 0 && length <= extent && static_cast<std::size_t>(first) <= extent - length,
                           "narrow", "expected a range within axis ", axis, " of shape ", x.shape(), ", got length ",
                           length, " from ", start);
  return narrowed("narrow", x, i, static_cast<std::size_t>(first), length,
                  [&](auto& arguments) { arguments.add("axis", axis).add("start", start).add("length", length); });
}

template <class T> std::vector<Tensor<T>> split(const Tensor<T>& x, std::size_t size, std::ptrdiff_t axis) {
  const std::size_t i = normalize_axis("split", axis, x.dimension());
  require(size > 0, "split", "expected pieces of length 1 or more, got 0");
  std::vector<Tensor<T>> pieces;
  const std::size_t extent = x.shape()[i];
  std::size_t start = 0;
  do {
    pieces.push_back(narrowed("split", x, i, start, std::min(size, extent - start), [&](auto& arguments) {
      arguments.add("split_size", size).add("axis", axis).add("start", start);
    }));
    start += size;
  } while (start < extent);
  return pieces;
}

// y_i = x_(i - shift): moves elements from the end to the start.
template <class T> Tensor<T> roll(const Tensor<T>& x, std::ptrdiff_t shift, std::ptrdiff_t axis) {
  const std::size_t i = normalize_axis("roll", axis, x.dimension());
  const auto extent = static_cast<std::ptrdiff_t>(x.shape()[i]);
  if (extent == 0) return x;
  const auto moved = static_cast<std::size_t>((shift % extent + extent) % extent);  // to the start
  const std::size_t kept = x.shape()[i] - moved;
  const auto describe = [&](auto& arguments) { arguments.add("shift", shift).add("axis", axis); };
  return cat({narrowed("roll", x, i, kept, moved, describe), narrowed("roll", x, i, 0, kept, describe)}, axis);
}

template <class T> Tensor<T> roll(const Tensor<T>& x, std::ptrdiff_t shift) {
  return reshaped("roll", roll(reshaped("roll", x, {x.size()}), shift, 0), x.shape());
}

template <class T> Tensor<T> tril(const Tensor<T>& x, std::ptrdiff_t diagonal) {
  return triangle({"tril", "y = tril(x); dx = tril(dy)"}, x, diagonal, std::less_equal<>());
}

template <class T> Tensor<T> triu(const Tensor<T>& x, std::ptrdiff_t diagonal) {
  return triangle({"triu", "y = triu(x); dx = triu(dy)"}, x, diagonal, std::greater_equal<>());
}

template <class T> Tensor<T> cat(std::span<const Tensor<T>> tensors, std::ptrdiff_t axis) {
  require(!tensors.empty(), "cat", "expected at least one tensor, got none");
  const Shape& first = tensors[0].shape();
  const std::size_t joined = normalize_axis("cat", axis, first.size());
  Shape shape = first;
  shape[joined] = 0;
  for (const Tensor<T>& x : tensors) {
    Shape expected = first;
    if (x.dimension() == first.size()) expected[joined] = x.shape()[joined];
    require(x.shape() == expected, "cat", "expected equal shapes except along axis ", axis, ", got ", first, " and ",
            x.shape());
    shape[joined] += expected[joined];
    detail::require_addressable<T>("cat", shape);
  }

  Array<T> y(shape);
  View place{{}, contiguous_strides(shape)};
  std::vector<View> places;  // of the tensors in the result
  for (const Tensor<T>& x : tensors) {
    place.shape = x.shape();
    detail::scatter(y, x.value(), place);
    places.push_back(place);
    place.offset += static_cast<std::ptrdiff_t>(x.shape()[joined]) * place.strides[joined];
  }
  const std::vector<Input<T>> inputs(tensors.begin(), tensors.end());
  return record(
      {"cat", "y = [x₁ x₂ …]; dxᵢ = dyᵢ"}, std::move(y), std::span(inputs),
      [places = std::move(places)](const Array<T>& dy, auto& dx) {
        for (std::size_t i = 0; i < places.size(); ++i)
          if (dx[i].needs_grad()) dx[i] += detail::gather(dy, places[i]);
      },
      along(axis));
}

template <class T> Tensor<T> stack(std::span<const Tensor<T>> tensors, std::ptrdiff_t axis) {
  require(!tensors.empty(), "stack", "expected at least one tensor, got none");
  const std::size_t i = normalize_axis("stack", axis, tensors[0].dimension() + 1);
  for (const Tensor<T>& x : tensors)
    require(x.shape() == tensors[0].shape(), "stack", "expected equal shapes, got ", tensors[0].shape(), " and ",
            x.shape());
  detail::require_addressable<T>("stack", inserted(tensors[0].shape(), i, tensors.size()));
  std::vector<Tensor<T>> slices;
  for (const Tensor<T>& x : tensors) slices.push_back(unsqueeze(x, static_cast<std::ptrdiff_t>(i)));
  return cat(slices, static_cast<std::ptrdiff_t>(i));
}

#define INSTANTIATE(T)                                                                      \
  template Tensor<T> transpose(const Tensor<T>&, std::ptrdiff_t, std::ptrdiff_t);           \
  template Tensor<T> permute(const Tensor<T>&, const Axes&);                                \
  template Tensor<T> reshape(const Tensor<T>&, const Extents&);                             \
  template Tensor<T> unsqueeze(const Tensor<T>&, std::ptrdiff_t);                           \
  template Tensor<T> squeeze(const Tensor<T>&);                                             \
  template Tensor<T> squeeze(const Tensor<T>&, std::ptrdiff_t);                             \
  template Tensor<T> expand(const Tensor<T>&, const Extents&);                              \
  template Tensor<T> repeat(const Tensor<T>&, const IntList&);                              \
  template Tensor<T> repeat_interleave(const Tensor<T>&, std::size_t, std::ptrdiff_t);      \
  template Tensor<T> select(const Tensor<T>&, std::ptrdiff_t, std::ptrdiff_t);              \
  template Tensor<T> narrow(const Tensor<T>&, std::ptrdiff_t, std::ptrdiff_t, std::size_t); \
  template std::vector<Tensor<T>> split(const Tensor<T>&, std::size_t, std::ptrdiff_t);     \
  template Tensor<T> roll(const Tensor<T>&, std::ptrdiff_t, std::ptrdiff_t);                \
  template Tensor<T> roll(const Tensor<T>&, std::ptrdiff_t);                                \
  template Tensor<T> tril(const Tensor<T>&, std::ptrdiff_t);                                \
  template Tensor<T> triu(const Tensor<T>&, std::ptrdiff_t);                                \
  template Tensor<T> cat(std::span<const Tensor<T>>, std::ptrdiff_t);                       \
  template Tensor<T> stack(std::span<const Tensor<T>>, std::ptrdiff_t);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
