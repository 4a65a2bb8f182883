#include "muon.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../engine/array/internal/parallel.hpp"
#include "../engine/array/threads.hpp"
#include "../engine/kernels/gemm.hpp"
#include "internal/optimizer.hpp"

namespace tapegrad {

using detail::for_each_element;
using detail::Matrix;

static void check_options(const char* optimizer, const MuonOptions& options) {
  detail::require_options(optimizer,
                          {{"lr", options.lr}, {"weight_decay", options.weight_decay}, {"eps", options.eps}});
  detail::require(0 <= options.momentum && options.momentum < 1, optimizer, "expected momentum in [0, 1), got ",
                  options.momentum);
  for (const double coefficient : options.ns_coefficients)
    detail::require(std::isfinite(coefficient), optimizer, "expected finite ns_coefficients, got ", coefficient);
  detail::require(options.ns_steps < 100, optimizer, "expected ns_steps below 100, got ", options.ns_steps);
}

namespace {

/// c = alpha a b + beta c, with rows of c distributed over the threads. Unlike gemm it never allocates.
template <class T>
void product(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, T alpha = 1, T beta = 0) {
  const bool is_large = a.columns * c.rows * c.columns >= std::size_t{1} << 19;
  detail::parallel_for(c.rows, is_large ? num_threads() : 1, [&](std::size_t begin, std::size_t end) {
    detail::gemm_on_this_thread<T>(a.rows_between(begin, end), b, c.rows_between(begin, end), alpha, beta);
  });
}

/// Makes the singular values of x about 1. Returns x or `other`, whichever has the result; gram and polynomial are
/// square, as large as the smaller extent of x.
template <class T>
Matrix<T> orthogonalized(Matrix<T> x, Matrix<T> other, Matrix<T> gram, Matrix<T> polynomial,
                         const MuonOptions& options) {
  const auto a = static_cast<T>(options.ns_coefficients[0]), b = static_cast<T>(options.ns_coefficients[1]),
             c = static_cast<T>(options.ns_coefficients[2]);
  const bool is_tall = x.rows > x.columns;
  const std::size_t size = gram.rows;
  for (std::size_t step = 0; step < options.ns_steps; ++step) {
    if (is_tall)
      product<T>(x.t(), x, gram);
    else
      product<T>(x, x.t(), gram);
    std::copy_n(gram.data, size * size, polynomial.data);
    product<T>(gram, gram, polynomial, c, b);  // b gram + c gram^2
    for (std::size_t i = 0; i < size; ++i) polynomial.row(i)[i] += a;
    if (is_tall)
      product<T>(x, polynomial, other);
    else
      product<T>(polynomial, x, other);
    std::swap(x, other);
  }
  return x;
}

}  // namespace

template <class T> MuonState<T>::MuonState(const Shape& shape) : momentum_buffer(shape) {
  detail::require(shape.size() == 2, "Muon", "expected matrices, got a parameter of shape ", to_string(shape),
                  "; train other parameters with AdamW");
}

// For X twice, and two square matrices as large as its smaller extent.
template <class T> std::size_t Muon<T>::memory_size(const Shape& shape) const {
  const std::size_t smaller = std::min(shape[0], shape[1]);
  return 2 * (shape[0] * shape[1] + smaller * smaller);
}

template <class T>
void Muon<T>::update(Parameter<T>& parameter, MuonState<T>& state, const MuonOptions& options, T* memory) const {
  const std::size_t rows = parameter.shape()[0], columns = parameter.shape()[1], smaller = std::min(rows, columns);
  const std::size_t count = rows * columns;
  const Matrix<T> x(memory, rows, columns), other(x.data + count, rows, columns),
      gram(other.data + count, smaller, smaller), polynomial(gram.data + smaller * smaller, smaller, smaller);

  const auto momentum = static_cast<T>(options.momentum), fresh = static_cast<T>(1 - options.momentum);
  const T* grad = parameter.grad().data();
  T* buffer = state.momentum_buffer.mutable_value().data();
  for_each_element(count, [=, nesterov = options.nesterov, x = x.data](std::size_t i) {
    buffer[i] = momentum * buffer[i] + fresh * grad[i];
    x[i] = nesterov ? fresh * grad[i] + momentum * buffer[i] : buffer[i];
  });
  const double norm = std::sqrt(detail::sum_of_squares(x.data, count));
  for_each_element(count, [data = x.data, scale = static_cast<T>(1 / std::max(norm, options.eps))](std::size_t i) {
    data[i] *= scale;
  });

  const double ratio = options.match_rms_adamw ? 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)))
                                               : std::sqrt(std::max(1.0, double(rows) / double(columns)));
  const auto rate = static_cast<T>(options.lr * ratio), kept = static_cast<T>(1 - options.lr * options.weight_decay);
  T* p = parameter.mutable_value().data();
  for_each_element(count, [=, step = orthogonalized(x, other, gram, polynomial, options).data](std::size_t i) {
    p[i] = kept * p[i] - rate * step[i];
  });
}

#define INSTANTIATE(T)                                           \
  template struct MuonState<T>;                                  \
  template class GroupedOptimizer<T, MuonOptions, MuonState<T>>; \
  template class Muon<T>;
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
