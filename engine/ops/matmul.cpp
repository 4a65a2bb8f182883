#include <functional>
#include <numeric>
#include <string>

#include "../kernels/gemm.hpp"
#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::gemm, detail::Matrix, detail::require, detail::Strides;

// A batch of products (m, k) (k, n) -> (m, n) over leading axes that broadcast.
struct Products {
  Shape batch;
  Strides a_step, b_step;  // matrices from one to the next along each axis of the batch; 0 where it broadcasts
  std::size_t m, k, n;
  Shape out;  // the result's, without the axes missing in a 1-d operand

  // Calls body(offset of a, offset of b, index of the product). On several threads if the bodies may run concurrently
  // and a product is too small to be parallel itself.
  template <class Body> void for_each(bool side_by_side, Body body) const {
    const std::size_t count = element_count(batch), multiplications = m * k * n;
    const bool shared_out = side_by_side && multiplications < (std::size_t{1} << 21);
    const std::size_t chunks = shared_out ? detail::chunks_for(count * multiplications / 16) : 1;
    detail::parallel_for(count, chunks, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(offset(i, a_step, m * k), offset(i, b_step, k * n), i);
    });
  }

 private:
  std::ptrdiff_t offset(std::size_t product, const Strides& step, std::size_t matrix_size) const {
    std::ptrdiff_t matrices = 0;
    for (std::size_t axis = batch.size(); axis-- > 0; product /= batch[axis])
      matrices += static_cast<std::ptrdiff_t>(product % batch[axis]) * step[axis];
    return matrices * static_cast<std::ptrdiff_t>(matrix_size);
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
  return p;
}

// matmul(a, b) with einsum's equation as an argument for observers of the tape, unless it is "".
template <class T> Tensor<T> multiply(std::string_view equation, const Tensor<T>& a, const Tensor<T>& b) {
  const Products p = plan(a, b);
  auto y = detail::uninitialized<T>("matmul", p.out);
  p.for_each(true, [&, m = p.m, k = p.k, n = p.n](auto a_at, auto b_at, std::size_t i) {
    gemm<T>({a.value().data() + a_at, m, k}, {b.value().data() + b_at, k, n}, {y.data() + i * m * n, m, n});
  });
  return record(
      {"matmul", "y = a b; da = dy bᵀ; db = aᵀ dy"}, std::move(y), {a, b},
      [p, a = a.shared_value(), b = b.shared_value()](const Array<T>& dy, auto& dx) {
        const std::size_t m = p.m, k = p.k, n = p.n;
        // A matrix read by several products accumulates their gradients.
        const auto add = [&](const Gradient<T>& gradient, std::size_t matrix_size, auto product) {
          if (!gradient.needs_grad()) return;
          const bool distinct = gradient.size() == element_count(p.batch) * matrix_size;
          const auto to =
              distinct ? gradient.destination() : Destination<T>{detail::zeroed_destination(gradient), T(1)};
          p.for_each(distinct, [&](auto a_at, auto b_at, std::size_t i) {
            product(a_at, b_at, Matrix<const T>(dy.data() + i * m * n, m, n), to);
          });
        };
        add(dx[0], m * k, [&](auto a_at, auto b_at, Matrix<const T> dy_i, Destination<T> da) {
          gemm<T>(dy_i, Matrix<const T>(b->data() + b_at, k, n).t(), {da.data + a_at, m, k}, 1, da.beta);
        });
        add(dx[1], k * n, [&](auto a_at, auto b_at, Matrix<const T> dy_i, Destination<T> db) {
          gemm<T>(Matrix<const T>(a->data() + a_at, m, k).t(), dy_i, {db.data + b_at, k, n}, 1, db.beta);
        });
      },
      [equation](auto& arguments) {
        if (!equation.empty()) arguments.add("equation", equation);
      });
}

// The array's rows along the last axis, as one matrix.
template <class T> Matrix<const T> matrix_of(const Array<T>& x) {
  const auto last = x.shape().end() - 1;
  return {x.data(), std::accumulate(x.shape().begin(), last, std::size_t{1}, std::multiplies<>()), *last};
}

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
  auto y = detail::uninitialized<T>("linear", shape);
  const Matrix<const T> X = matrix_of(x.value());
  const Matrix<const W> transposed = matrix_of(weight).t();
  const Matrix<T> Y(y.data(), X.rows, out);
  bias.defined() ? detail::gemm_plus_bias(X, transposed, bias.value().data(), Y) : gemm(X, transposed, Y);
  return y;
}

// gradient += a b
template <class T, class W> void add_product(Matrix<const T> a, Matrix<const W> b, const Gradient<T>& gradient) {
  if (!gradient.needs_grad()) return;
  const auto [data, beta] = gradient.destination();
  gemm<T>(a, b, {data, a.rows, b.columns}, 1, beta);
}

// gradient += Σ dy over the rows
template <class T> void add_rows(Matrix<const T> dy, const Gradient<T>& gradient) {
  if (!gradient.needs_grad()) return;
  gradient += detail::sums_by_blocks<T>(dy.rows, {dy.columns}, [&](std::size_t r, T* sums) {
    detail::vector_loops<T>().add(dy.row(r), sums, dy.columns);
  });
}

}  // namespace

template <class T> Tensor<T> matmul(const Tensor<T>& a, const Tensor<T>& b) { return multiply({}, a, b); }

template <class T> Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias) {
  auto y = affine(x, weight.value(), bias, weight);
  const char* formula =
      bias.defined() ? "y = x Wᵀ + b; dx = dy W; dW = dyᵀ x; db = Σ dy" : "y = x Wᵀ; dx = dy W; dW = dyᵀ x";
  return record({"linear", formula}, std::move(y), {x, weight, bias},
                [x = x.shared_value(), weight = weight.shared_value()](const Array<T>& dy, auto& dx) {
                  add_product(matrix_of(dy), matrix_of(*weight), dx[0]);
                  add_product(matrix_of(dy).t(), matrix_of(*x), dx[1]);
                  add_rows(matrix_of(dy), dx[2]);
                });
}

template <class T>
Tensor<T> linear(const Tensor<T>& x, const Value<BFloat16>& weight, const Tensor<T>& bias, std::string_view name) {
  auto y = affine(x, *weight, bias,
                  [&] { return std::string(name) + (name.empty() ? "" : " ") + to_string(weight->shape()); });
  const char* formula = bias.defined() ? "y = x Wᵀ + b; dx = dy W; db = Σ dy" : "y = x Wᵀ; dx = dy W";
  return record({"linear", formula}, std::move(y), {x, bias}, [weight](const Array<T>& dy, auto& dx) {
    add_product(matrix_of(dy), matrix_of(*weight), dx[0]);
    add_rows(matrix_of(dy), dx[1]);
  });
}

// ---- einsum ---------------------------------------------------------------------------------------------------------

namespace {

// The letters of an equation "ab,bc->ac".
struct Equation {
  std::string left, right, out;
};

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

Equation parse(std::string_view text) {
  const auto check = [&](bool holds, const char* what) {
    require(holds, "einsum", "expected ", what, ", got \"", text, '"');
  };
  std::string letters(text);
  std::erase(letters, ' ');
  const std::size_t comma = letters.find(','), arrow = letters.find("->");
  check(comma != std::string::npos && arrow != std::string::npos && comma < arrow,
        "an equation with two operands and an output, such as \"ij,jk->ik\"");
  Equation e{letters.substr(0, comma), letters.substr(comma + 1, arrow - comma - 1), letters.substr(arrow + 2)};
  for (const std::string* term : {&e.left, &e.right, &e.out})
    for (std::size_t i = 0; i < term->size(); ++i) {
      const char c = (*term)[i];
      check((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), "letters for axes");
      check(term->find(c, i + 1) == std::string::npos, "each letter at most once per operand and in the output");
    }
  for (char c : e.out) check(has(e.left, c) || has(e.right, c), "output letters that occur in an operand");
  return e;
}

// Sums over the axes whose letters are not in `kept`, and removes these letters.
template <class T> Tensor<T> sum_others(const Tensor<T>& x, std::string& letters, const std::string& kept) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < letters.size(); ++i)
    if (!has(kept, letters[i])) axes.push_back(i);
  std::erase_if(letters, [&](char letter) { return !has(kept, letter); });
  return axes.empty() ? x : sum(x, axes);
}

// Permutes x's axes, named by `letters`, to the order of `wanted`.
template <class T> Tensor<T> ordered(const Tensor<T>& x, const std::string& letters, const std::string& wanted) {
  if (letters == wanted) return x;
  std::vector<std::size_t> axes;
  for (char c : wanted) axes.push_back(letters.find(c));
  return permute(x, axes);
}

}  // namespace

// Every einsum of two operands is a batched matrix product between permutations. Letters in both operands and the
// output are batch axes; letters in one operand and the output are rows or columns; the product sums over the others.
template <class T> Tensor<T> einsum(std::string_view equation, const Tensor<T>& a, const Tensor<T>& b) {
  const Equation e = parse(equation);
  require(e.left.size() == a.dimension() && e.right.size() == b.dimension(), "einsum", "expected operands with ",
          e.left.size(), " and ", e.right.size(), " axes for \"", equation, "\", got shapes ", a.shape(), " and ",
          b.shape());
  for (std::size_t i = 0; i < e.left.size(); ++i)
    if (const std::size_t j = e.right.find(e.left[i]); j != std::string::npos)
      require(a.shape()[i] == b.shape()[j], "einsum", "expected equal extents for axis '", e.left[i], "' in \"",
              equation, "\", got shapes ", a.shape(), " and ", b.shape());
  const auto extents_of = [&](const std::string& letters) {
    Shape extents;
    for (char c : letters) extents.push_back(has(e.left, c) ? a.shape()[e.left.find(c)] : b.shape()[e.right.find(c)]);
    return extents;
  };
  const auto size_of = [&](const std::string& letters) { return element_count(extents_of(letters)); };
  detail::require_addressable<T>("einsum", extents_of(e.out));

  std::string left_letters = e.left, right_letters = e.right, batch, rows, columns, summed;
  const Tensor<T> left = sum_others(a, left_letters, e.right + e.out),
                  right = sum_others(b, right_letters, e.left + e.out);
  for (char c : left_letters) (!has(e.right, c) ? rows : has(e.out, c) ? batch : summed) += c;
  for (char c : right_letters)
    if (!has(e.left, c)) columns += c;
  const Tensor<T> product = multiply(
      equation,
      reshape(ordered(left, left_letters, batch + rows + summed), {size_of(batch), size_of(rows), size_of(summed)}),
      reshape(ordered(right, right_letters, batch + summed + columns),
              {size_of(batch), size_of(summed), size_of(columns)}));
  return ordered(reshape(product, extents_of(batch + rows + columns)), batch + rows + columns, e.out);
}

#define INSTANTIATE(T)                                                                                     \
  template Tensor<T> matmul(const Tensor<T>&, const Tensor<T>&);                                           \
  template Tensor<T> linear(const Tensor<T>&, const Tensor<T>&, const Tensor<T>&);                         \
  template Tensor<T> linear(const Tensor<T>&, const Value<BFloat16>&, const Tensor<T>&, std::string_view); \
  template Tensor<T> einsum(std::string_view, const Tensor<T>&, const Tensor<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
