#include "../array/internal/error.hpp"
#include "../kernels/strided.hpp"
#include "ops.hpp"

namespace tapegrad {

IntArray one_hot(const IntArray& ids, std::size_t classes) {
  Shape shape = ids.shape();
  shape.push_back(classes);
  auto out = detail::uninitialized<std::int64_t>("one_hot", shape);
  out.fill(0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int64_t id = ids.data()[i];
    detail::require_in_range(id >= 0 && static_cast<std::size_t>(id) < classes, "one_hot", "expected ids from 0 to ",
                             static_cast<std::ptrdiff_t>(classes) - 1, ", got ", id);
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

}  // namespace tapegrad
