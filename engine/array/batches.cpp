#include "batches.hpp"

#include <numeric>
#include <span>

#include "internal/layout.hpp"

namespace tapegrad {
namespace detail {

Shape shape_of_rows(const Shape& shape, const IntArray& order, std::size_t element_size) {
  require(!shape.empty(), "rows", "expected an array with at least one axis, got shape ", shape);
  for (const std::int64_t row : order)
    require_in_range(row >= 0 && static_cast<std::size_t>(row) < shape[0], "rows", "expected indices from 0 to ",
                     static_cast<std::ptrdiff_t>(shape[0]) - 1, " of an array of shape ", shape, ", got ", row);
  Shape out = order.shape();
  out.insert(out.end(), shape.begin() + 1, shape.end());
  require(addressable(out, element_size), "rows", "expected a result that fits in memory, got shape ", out);
  return out;
}

IntArray padded(std::size_t rows, std::size_t columns, std::int64_t padding) {
  auto out = uninitialized<std::int64_t>("pad", {rows, columns});
  out.fill(padding);
  return out;
}

}  // namespace detail

std::vector<IntArray> batches(std::size_t count, std::size_t size, Generator& generator) {
  detail::require(size > 0, "batches", "expected a size of at least 1, got ", size);
  const IntArray order = random_permutation(count, generator);
  std::vector<IntArray> out;
  for (auto left = std::span(order.data(), count); !left.empty(); left = left.subspan(out.back().size()))
    out.push_back(int_array(left.first(std::min(size, left.size()))));
  return out;
}

IntArray arange(std::int64_t first, std::int64_t last) {
  detail::require(first <= last, "arange", "expected first <= last, got ", first, " and ", last);
  auto out =
      detail::uninitialized<std::int64_t>("arange", {static_cast<std::size_t>(last) - static_cast<std::size_t>(first)});
  std::iota(out.begin(), out.end(), first);
  return out;
}

}  // namespace tapegrad
