#include "table.hpp"

namespace operations {
namespace {

// The indices at every place along the axis of the shape.
tg::IntArray indices_along(tg::Shape shape, std::ptrdiff_t axis, const tg::IntArray& indices) {
  if (shape.empty()) return tg::IntArray(0);
  const std::size_t at = static_cast<std::size_t>(axis) + (axis < 0 ? shape.size() : 0);
  if (at >= shape.size()) return tg::IntArray(shape, 0);
  std::size_t inner = 1;
  for (std::size_t i = at + 1; i < shape.size(); ++i) inner *= shape[i];
  shape[at] = indices.size();
  tg::IntArray all(shape);
  for (std::size_t i = 0; i < all.size(); ++i) all.data()[i] = indices(i / inner % indices.size());
  return all;
}

tg::IntArray no_indices(const tg::Shape& shape) { return tg::IntArray::from_shape(shape); }

void add_gather(Table& table) {
  table.add("gather", "columns, some twice", {draw({2, 3})}, [](auto& x) {
    return tg::gather(x[0], 1, {{2, 0, 2, 1}, {0, 0, 1, 2}});
  });
  table.derive("gather", "along an axis", {draw({4})}, "n?", [](auto& x, std::ptrdiff_t axis) {
    return tg::gather(x[0], axis, indices_along(x[0].shape(), axis, {2, 0, 3, 3, 0}));
  });
  table.add("gather", "from some rows alone", {draw({3, 4})}, [](auto& x) {
    return tg::gather(x[0], 1, tg::IntArray{{3, 3}});
  });
  table.add("gather", "from parts of four axes", {draw({2, 3, 2, 3})}, [](auto& x) {
    return tg::gather(x[0], 1, tg::IntArray{{{{2, 0}}, {{2, 2}}, {{1, 0}}, {{2, 1}}}});
  });
  table.add("gather", "one element of a vector", {draw({4})},
            [](auto& x) { return tg::gather(x[0], 0, tg::IntArray(2)); });
  table.add("gather", "a scalar", {draw({})}, [](auto& x) { return tg::gather(x[0], -1, tg::IntArray(0)); });
  table.add("gather", "a scalar twice", {draw({})}, [](auto& x) { return tg::gather(x[0], 0, tg::IntArray{0, 0}); });
  table.add("gather", "no columns", {draw({2, 3})}, [](auto& x) { return tg::gather(x[0], 1, no_indices({2, 0})); });
}

// Values weighted by their indices.
template <class T> tg::Tensor<T> with_indices(const tg::ValuesAndIndices<T>& found) {
  return found.values * (1 + found.indices);
}

void add_max(Table& table) {
  table.add("max", "rows", {draw({3, 4})}, [](auto& x) { return with_indices(tg::max(x[0], 1)); });
  table.derive("max", "along an axis", {draw({4})}, "n?",
               [](auto& x, std::ptrdiff_t axis) { return with_indices(tg::max(x[0], axis)); });
  table.add("max", "columns, kept", {draw({3, 4})},
            [](auto& x) { return with_indices(tg::max(x[0], 0, tg::keepdims)); });
  table.add("max", "a scalar", {draw({})}, [](auto& x) { return with_indices(tg::max(x[0], 0)); });
  table.add("max", "a scalar, kept", {draw({})}, [](auto& x) { return with_indices(tg::max(x[0], -1, tg::keepdims)); });
  table.add("max", "no columns, kept", {draw({3, 0})},
            [](auto& x) { return with_indices(tg::max(x[0], 0, tg::keepdims)); });
  table.add("max", "large", {draw({2, 20}, -1e30, 1e30)}, [](auto& x) { return with_indices(tg::max(x[0], 1)); });
}

void add_topk(Table& table) {
  table.add("topk", "three of five columns", {draw({2, 5})}, [](auto& x) { return with_indices(tg::topk(x[0], 3)); });
  table.derive("topk", "along an axis", {draw({5})}, "n",
               [](auto& x, std::ptrdiff_t axis) { return with_indices(tg::topk(x[0], 3, axis)); });
  table.derive("topk", "the smallest along an axis", {draw({5})}, "n",
               [](auto& x, std::ptrdiff_t axis) { return with_indices(tg::topk(x[0], 3, axis, false)); });
  table.add("topk", "the smallest of a middle axis", {draw({2, 4, 3})},
            [](auto& x) { return with_indices(tg::topk(x[0], 2, -2, false)); });
  table.add("topk", "all, in order", {draw({7})}, [](auto& x) { return with_indices(tg::topk(x[0], 7)); });
  table.add("topk", "none", {draw({2, 3})}, [](auto& x) { return with_indices(tg::topk(x[0], 0)); });
  table.add("topk", "a scalar", {draw({})}, [](auto& x) { return with_indices(tg::topk(x[0], 1, 0)); });
  table.add("topk", "large", {draw({2, 20}, -1e30, 1e30)}, [](auto& x) { return with_indices(tg::topk(x[0], 4, 1)); });
}

}  // namespace

void add_selection(Table& table) {
  add_gather(table);
  add_max(table);
  add_topk(table);
}

}  // namespace operations
