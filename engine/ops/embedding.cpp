#include <algorithm>
#include <string>

#include "../array/internal/layout.hpp"
#include "../array/internal/parallel.hpp"
#include "../kernels/vector_loops.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {

using detail::chunks_for;
using detail::parallel_for;

namespace {

// Checks ids and returns rows of the weight, called `shown` in errors.
template <class T, class W> Array<T> rows_of(const Array<W>& weight, const IntArray& ids, const auto& shown) {
  detail::require(weight.dimension() == 2, "embedding", "expected a weight of shape (rows, width), got ",
                  weight.shape());
  const std::size_t rows = weight.shape()[0], width = weight.shape()[1];
  for (std::int64_t id : ids)
    detail::require_in_range(id >= 0 && static_cast<std::size_t>(id) < rows, "embedding", "expected ids from 0 to ",
                             static_cast<std::ptrdiff_t>(rows) - 1, " for ", shown, ", got ", id);
  Shape shape = ids.shape();
  shape.push_back(width);
  auto y = detail::uninitialized<T>("embedding", shape);
  parallel_for(ids.size(), chunks_for(y.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      std::copy_n(weight.data() + static_cast<std::size_t>(ids.data()[i]) * width, width, y.data() + i * width);
  });
  return y;
}

}  // namespace

// The product with one_hot(ids)ᵀ is a scatter-add: dW[ids_i] += dy_i.
template <class T>
Tensor<T> embedding(const Tensor<T>& weight, const IntArray& ids, std::optional<std::int64_t> padding_idx) {
  auto y = rows_of<T>(weight.value(), ids, weight);
  const std::size_t width = weight.shape()[1];
  return record(
      {"embedding", "y = W[ids]; dW = one_hot(ids)ᵀ dy"}, std::move(y), {weight},
      [ids = ids, padding_idx, width](const Array<T>& dy, auto& dx) {
        T* dw = detail::zeroed_destination(dx[0]);
        const auto& loops = detail::vector_loops<T>();
        // Parallel over columns: ids may repeat, so threads with different rows of dy would race for a row of dW.
        const std::size_t chunks = std::min(chunks_for(dy.size()), (width + 127) / 128);
        parallel_for(width, chunks, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = 0; i < ids.size(); ++i) {
            const std::int64_t id = ids.data()[i];
            if (id == padding_idx) continue;
            loops.add(dy.data() + i * width + begin, dw + static_cast<std::size_t>(id) * width + begin, end - begin);
          }
        });
      },
      [&](auto& arguments) { arguments.add("ids", ids).add("padding_idx", padding_idx); });
}

template <class T> Tensor<T> embedding(const Value<BFloat16>& weight, const IntArray& ids, std::string_view name) {
  return rows_of<T>(*weight, ids,
                    [&] { return std::string(name) + (name.empty() ? "" : " ") + to_string(weight->shape()); });
}

#define INSTANTIATE(T)                                                                          \
  template Tensor<T> embedding(const Tensor<T>&, const IntArray&, std::optional<std::int64_t>); \
  template Tensor<T> embedding(const Value<BFloat16>&, const IntArray&, std::string_view);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
