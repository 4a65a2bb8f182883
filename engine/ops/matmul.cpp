#include "internal/matmul.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "../array/internal/error.hpp"
#include "../kernels/gemm.hpp"
#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::gemm;
using detail::Matrix;
using detail::require;
using detail::Strides;

// A batch of products (m, k) (k, n) -> (m, n) over leading axes that broadcast.
struct Products {
  Shape batch;
  Strides a_step, b_step;  // elements from one matrix to the next along each axis of the batch; 0 where it broadcasts
  std::size_t m, k, n;
  Shape out;  // the result's, without the axes missing in a 1-d operand

  // True if each product reads its own matrix of an operand with this many elements, `matrix_size` per matrix.
  bool reads_distinct_matrices(std::size_t operand_size, std::size_t matrix_size) const {
    return operand_size == element_count(batch) * matrix_size;
  }

  // Calls body(offset of a, offset of b, index of the product). On several threads if the bodies may run concurrently
  // and a product is too small to be parallel itself.
  template <class Body> void for_each(bool side_by_side, Body body) const {
    const std::size_t count = element_count(batch), multiplications = m * k * n;
    const bool shared_out = side_by_side && multiplications < (std::size_t{1} << 21);
    const std::size_t chunks = shared_out ? detail::chunks_for(count * multiplications / 16) : 1;
    detail::parallel_for(count, chunks, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(offset(i, a_step), offset(i, b_step), i);
    });
  }

 private:
  std::ptrdiff_t offset(std::size_t product, const Strides& step) const {
    std::ptrdiff_t sum = 0;
    for (std::size_t axis = batch.size(); axis-- > 0; product /= batch[axis])
      sum += static_cast<std::ptrdiff_t>(product % batch[axis]) * step[axis];
    return sum;
  }
};

template <class T> Products plan(const Tensor<T>& a, const Tensor<T>& b) {
  const auto given = [&] { return described(a) + " and " + described(b); };
  require(a.dimension() >= 1 && b.dimension() >= 1, "matmul", "expected operands of at least one axis, got ", given);
  Shape left = a.shape(), right = b.shape();  // including the axis missing in a 1-d operand
  if (a.dimension() == 1) left = Shape{1, left[0]};
  if (b.dimension() == 1) right = Shape{right[0], 1};
  Products p{{}, {}, {}, left[left.size() - 2], left.back(), right.back(), {}};
  require(right[right.size() - 2] == p.k, "matmul", "expected equal inner extents, got ", given, ": ", p.k, " and ",
          right[right.size() - 2]);

  const Shape a_batch(left.begin(), left.end() - 2), b_batch(right.begin(), right.end() - 2);
  require(detail::broadcast_together(a_batch, b_batch), "matmul", "expected leading axes that broadcast together, got ",
          given);
  p.batch = detail::broadcast_shapes("matmul", a_batch, b_batch);
  p.out = p.batch;
  if (a.dimension() > 1) p.out.push_back(p.m);
  if (b.dimension() > 1) p.out.push_back(p.n);

  if (element_count(b_batch) == 1) {  // one matrix on the right: the whole batch is one tall product
    p.m *= element_count(p.batch);
    p.batch = {};
    return p;
  }
  p.a_step = detail::broadcast_strides(a_batch, p.batch);
  p.b_step = detail::broadcast_strides(b_batch, p.batch);
  for (auto& step : p.a_step) step *= static_cast<std::ptrdiff_t>(p.m * p.k);
  for (auto& step : p.b_step) step *= static_cast<std::ptrdiff_t>(p.k * p.n);
  return p;
}

// The destination of an operand's gradient. A matrix read by several products accumulates their gradients.
template <class T>
Destination<T> operand_destination(const Gradient<T>& dx, const Products& p, std::size_t matrix_size) {
  if (p.reads_distinct_matrices(dx.size(), matrix_size)) return dx.destination();
  return {detail::zeroed_destination(dx), T(1)};
}

}  // namespace

template <class T> Tensor<T> detail::matmul_for(std::string_view equation, const Tensor<T>& a, const Tensor<T>& b) {
  const Products p = plan(a, b);
  auto y = detail::uninitialized<T>("matmul", p.out);
  p.for_each(true, [&, m = p.m, k = p.k, n = p.n](auto a_at, auto b_at, std::size_t i) {
    gemm<T>({a.value().data() + a_at, m, k}, {b.value().data() + b_at, k, n}, {y.data() + i * m * n, m, n});
  });
  return record(
      {"matmul", "y = a b; da = dy bᵀ; db = aᵀ dy"}, std::move(y), {a, b},
      [p, a = a.shared_value(), b = b.shared_value()](const Array<T>& dy, auto& dx) {
        const std::size_t m = p.m, k = p.k, n = p.n;
        if (dx[0].needs_grad()) {
          const auto [da, beta] = operand_destination<T>(dx[0], p, m * k);
          p.for_each(p.reads_distinct_matrices(a->size(), m * k),
                     [&, da = da, beta = beta](auto a_at, auto b_at, std::size_t i) {
                       gemm<T>({dy.data() + i * m * n, m, n}, Matrix<const T>(b->data() + b_at, k, n).t(),
                               {da + a_at, m, k}, 1, beta);
                     });
        }
        if (dx[1].needs_grad()) {
          const auto [db, beta] = operand_destination<T>(dx[1], p, k * n);
          p.for_each(p.reads_distinct_matrices(b->size(), k * n),
                     [&, db = db, beta = beta](auto a_at, auto b_at, std::size_t i) {
                       gemm<T>(Matrix<const T>(a->data() + a_at, m, k).t(), {dy.data() + i * m * n, m, n},
                               {db + b_at, k, n}, 1, beta);
                     });
        }
      },
      [equation](auto& arguments) {
        if (!equation.empty()) arguments.add("equation", equation);
      });
}

template <class T> Tensor<T> matmul(const Tensor<T>& a, const Tensor<T>& b) { return detail::matmul_for({}, a, b); }

namespace {

std::size_t row_count(const Shape& shape) { return element_count(Shape(shape.begin(), shape.end() - 1)); }

// x Wᵀ + b for a weight of T or in bfloat16, called `shown` in errors.
template <class T, class W>
Array<T> affine(const Tensor<T>& x, const Array<W>& weight, const Tensor<T>& bias, const auto& shown) {
  require(weight.dimension() == 2, "linear", "expected a weight of shape (out, in), got ", shown);
  const std::size_t out = weight.shape()[0], in = weight.shape()[1];
  require(x.dimension() >= 1 && x.shape().back() == in, "linear", "expected an input of shape (..., ", in, ") for ",
          shown, ", got ", x,
          [&] { return x.dimension() >= 1 ? ": axis -1 is " + std::to_string(x.shape().back()) : ""; });
  require(!bias.defined() || bias.shape() == Shape{out}, "linear", "expected a bias of shape (", out, ") for ", shown,
          ", got ", bias);
  Shape shape = x.shape();
  shape.back() = out;
  const std::size_t rows = row_count(shape);
  auto y = detail::uninitialized<T>("linear", shape);
  const Matrix<const T> X(x.value().data(), rows, in);
  const Matrix<T> Y(y.data(), rows, out);
  const Matrix<const W> transposed = Matrix<const W>(weight.data(), out, in).t();
  bias.defined() ? detail::gemm_plus_bias(X, transposed, bias.value().data(), Y) : gemm(X, transposed, Y);
  return y;
}

// dx += dy W
template <class T, class W> void add_input_gradient(const Array<T>& dy, const Array<W>& weight, const Gradient<T>& dx) {
  if (!dx.needs_grad()) return;
  const std::size_t out = weight.shape()[0], in = weight.shape()[1], rows = row_count(dy.shape());
  const auto [data, beta] = dx.destination();
  gemm<T>({dy.data(), rows, out}, Matrix<const W>(weight.data(), out, in), {data, rows, in}, 1, beta);
}

}  // namespace

template <class T> Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias) {
  auto y = affine(x, weight.value(), bias, weight);
  const char* formula =
      bias.defined() ? "y = x Wᵀ + b; dx = dy W; dW = dyᵀ x; db = Σ dy" : "y = x Wᵀ; dx = dy W; dW = dyᵀ x";
  return record({"linear", formula}, std::move(y), {x, weight, bias},
                [x = x.shared_value(), weight = weight.shared_value()](const Array<T>& dy, auto& dx) {
                  add_input_gradient(dy, *weight, dx[0]);
                  if (dx[1].needs_grad()) {
                    const std::size_t out = weight->shape()[0], in = weight->shape()[1];
                    const std::size_t rows = row_count(dy.shape());
                    const auto [data, beta] = dx[1].destination();
                    gemm<T>(Matrix<const T>(dy.data(), rows, out).t(), {x->data(), rows, in}, {data, out, in}, 1, beta);
                  }
                  dx[2] += dy;
                });
}

template <class T>
Tensor<T> linear(const Tensor<T>& x, const Value<BFloat16>& weight, const Tensor<T>& bias, std::string_view name) {
  auto y = affine(x, *weight, bias,
                  [&] { return std::string(name) + (name.empty() ? "" : " ") + to_string(weight->shape()); });
  const char* formula = bias.defined() ? "y = x Wᵀ + b; dx = dy W; db = Σ dy" : "y = x Wᵀ; dx = dy W";
  return record({"linear", formula}, std::move(y), {x, bias}, [weight](const Array<T>& dy, auto& dx) {
    add_input_gradient(dy, *weight, dx[0]);
    dx[1] += dy;
  });
}

#define INSTANTIATE(T)                                                                         \
  template Tensor<T> detail::matmul_for(std::string_view, const Tensor<T>&, const Tensor<T>&); \
  template Tensor<T> matmul(const Tensor<T>&, const Tensor<T>&);                               \
  template Tensor<T> linear(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&);             \
  template Tensor<T> linear(const Tensor<T>&, const Value<BFloat16>&, const Tensor<T>&, std::string_view);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
