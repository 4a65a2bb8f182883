#include <algorithm>

#include "../array/internal/layout.hpp"
#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {

using detail::require;
using detail::View;

template <class T> Tensor<T> cat(std::span<const Tensor<T>> tensors, std::ptrdiff_t axis) {
  require(!tensors.empty(), "cat", "expected at least one tensor, got none");
  const Shape& first = tensors[0].shape();
  const std::size_t along = detail::normalize_axis("cat", axis, first.size());
  Shape shape = first;
  shape[along] = 0;
  for (const Tensor<T>& x : tensors) {
    Shape other = x.shape();
    const bool fits = other.size() == first.size();
    const std::size_t extent = fits ? other[along] : 0;
    if (fits) other[along] = first[along];
    require(fits && other == first, "cat", "expected equal shapes except along axis ", axis, ", got ", first, " and ",
            x.shape());
    shape[along] += extent;
    detail::require_addressable<T>("cat", shape);
  }

  // Each tensor's view in the result.
  std::vector<View> places;
  const detail::Strides strides = detail::contiguous_strides(shape);
  std::ptrdiff_t offset = 0;
  for (const Tensor<T>& x : tensors) {
    places.push_back({x.shape(), strides, offset});
    offset += static_cast<std::ptrdiff_t>(x.shape()[along]) * strides[along];
  }

  Array<T> y(shape);
  for (std::size_t i = 0; i < tensors.size(); ++i) detail::scatter(y, tensors[i].value(), places[i]);
  const std::vector<Input<T>> inputs(tensors.begin(), tensors.end());
  return record(
      {"cat", "y = [x₁ x₂ …]; dxᵢ = dyᵢ"}, std::move(y), std::span(inputs),
      [places = std::move(places)](const Array<T>& dy, auto& dx) {
        for (std::size_t i = 0; i < places.size(); ++i)
          if (dx[i].needs_grad()) dx[i] += detail::gather(dy, places[i]);
      },
      [axis](auto& arguments) { arguments.add("axis", axis); });
}

template <class T> Tensor<T> stack(std::span<const Tensor<T>> tensors, std::ptrdiff_t axis) {
  require(!tensors.empty(), "stack", "expected at least one tensor, got none");
  const std::size_t along = detail::normalize_axis("stack", axis, tensors[0].dimension() + 1);
  for (const Tensor<T>& x : tensors)
    require(x.shape() == tensors[0].shape(), "stack", "expected equal shapes, got ", tensors[0].shape(), " and ",
            x.shape());
  Shape shape = tensors[0].shape();
  shape.push_back(tensors.size());
  std::rotate(shape.begin() + static_cast<std::ptrdiff_t>(along), shape.end() - 1, shape.end());
  detail::require_addressable<T>("stack", shape);
  std::vector<Tensor<T>> slices;
  for (const Tensor<T>& x : tensors) slices.push_back(unsqueeze(x, static_cast<std::ptrdiff_t>(along)));
  return cat(slices, static_cast<std::ptrdiff_t>(along));
}

#define INSTANTIATE(T)                                                \
  template Tensor<T> cat(std::span<const Tensor<T>>, std::ptrdiff_t); \
  template Tensor<T> stack(std::span<const Tensor<T>>, std::ptrdiff_t);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
