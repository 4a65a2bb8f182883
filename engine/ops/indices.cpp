#include "../array/internal/error.hpp"
#include "../kernels/strided.hpp"
#include "ops.hpp"

namespace tapegrad {

template <class T> IntArray argmax(const Array<T>& x, std::ptrdiff_t axis) {
  const std::size_t i = detail::normalize_axis("argmax", axis, x.dimension());
  const std::size_t extent = x.shape()[i];
  detail::require(extent > 0, "argmax", "expected at least one element along axis ", axis, ", given shape ", x.shape());
  std::size_t inner = 1;  // elements from one index along the axis to the next
  for (std::size_t j = i + 1; j < x.dimension(); ++j) inner *= x.shape()[j];
  Shape shape = x.shape();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(i));
  auto out = detail::uninitialized<std::int64_t>("argmax", shape);
  for (std::size_t o = 0; o < out.size(); ++o) {
    const T* row = x.data() + o / inner * extent * inner + o % inner;
    std::size_t best = 0;
    for (std::size_t j = 1; j < extent; ++j)
      if (row[j * inner] > row[best * inner]) best = j;
    out.data()[o] = static_cast<std::int64_t>(best);
  }
  return out;
}

IntArray one_hot(const IntArray& ids, std::size_t classes) {
  Shape shape = ids.shape();
  shape.push_back(classes);
  auto out = detail::uninitialized<std::int64_t>("one_hot", shape);
  out.fill(0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t id = ids.data()[i];
    detail::require_in_range(id >= 0 && static_cast<std::size_t>(id) < classes, "one_hot", "expected ids from 0 to ",
                             static_cast<std::ptrdiff_t>(classes) - 1, ", given ", id);
    out.data()[i * classes + static_cast<std::size_t>(id)] = 1;
  }
  return out;
}

BoolArray causal_mask(std::size_t rows, std::size_t columns) {
  auto mask = detail::uninitialized<bool>("causal_mask", {rows, columns});
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) mask.data()[i * columns + j] = j <= i;
  return mask;
}

BoolArray padding_mask(const IntArray& ids, std::int64_t padding_id) {
  return detail::map<bool>(ids, [padding_id](std::int64_t id) { return id != padding_id; });
}

template IntArray argmax(const Array<float>&, std::ptrdiff_t);
template IntArray argmax(const Array<double>&, std::ptrdiff_t);

}  // namespace tapegrad
