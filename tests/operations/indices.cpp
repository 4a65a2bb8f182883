#include "table.hpp"

namespace operations {
namespace {

// Converts indices and masks to a tensor of the inputs' type, without gradients.
template <class T, class Indices> tg::Tensor<T> as_tensor(const Inputs<T>&, const Indices& indices) {
  return tg::Tensor<T>(tg::Array<T>(indices));
}

template <class T> tg::Tensor<T> number(const Inputs<T>&, double x) {
  return tg::Tensor<T>(tg::Array<T>(tg::Shape{}, static_cast<T>(x)));
}

}  // namespace

void add_indices(Table& table) {
  table.add("argmax", "rows", {draw({2, 4})}, [](auto& x) { return as_tensor(x, tg::argmax(x[0], -1)); });
  table.add("argmax", "a vector", {draw({5})}, [](auto& x) { return as_tensor(x, tg::argmax(x[0].value(), 0)); })
      .along("n?", [](auto& x, std::ptrdiff_t axis) { return as_tensor(x, tg::argmax(x[0], axis)); });
  table.add("argmax", "a long row, large", {draw({40}, -1e30, 1e30)},
            [](auto& x) { return as_tensor(x, tg::argmax(x[0], 0)); });

  table.add("accuracy", "rows", {draw({4, 3})}, [](auto& x) { return number(x, tg::accuracy(x[0], {2, 0, 1, 1})); });
  table.add("accuracy", "one label", {draw({3})},
            [](auto& x) { return number(x, tg::accuracy(x[0], tg::IntArray(tg::Shape{}, 0))); });
  table.add("accuracy", "an array of three axes, one label ignored", {draw({2, 3, 4})}, [](auto& x) {
    return number(x, tg::accuracy(x[0].value(), {{0, 3, -100}, {1, 2, 2}}));
  });

  table.add("one_hot", "ids of two axes", {}, [](auto& x) { return as_tensor(x, tg::one_hot({{2, 0}, {1, 1}}, 3)); });
  table.add("one_hot", "one id", {}, [](auto& x) { return as_tensor(x, tg::one_hot(tg::IntArray(1), 3)); });

  table.add("causal_mask", "square", {}, [](auto& x) { return as_tensor(x, tg::causal_mask(3, 3)); });
  table.add("causal_mask", "tall", {}, [](auto& x) { return as_tensor(x, tg::causal_mask(4, 2)); });
  table.add("causal_mask", "no rows", {}, [](auto& x) { return as_tensor(x, tg::causal_mask(0, 3)); });

  table.add("padding_mask", "two rows", {}, [](auto& x) {
    return as_tensor(x, tg::padding_mask({{3, 1, 0}, {2, 0, 0}}, 0));
  });
}

}  // namespace operations
