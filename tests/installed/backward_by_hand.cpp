// A manual derivation in xtensor has the tape's gradients at every step.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>

#include <cmath>

#include "check.hpp"

namespace tg = tapegrad;
using Array = xt::xarray<double>;

// a b
Array product(const Array& a, const Array& b) {
  Array c = xt::zeros<double>({a.shape(0), b.shape(1)});
  for (std::size_t i = 0; i < a.shape(0); ++i)
    for (std::size_t j = 0; j < a.shape(1); ++j)
      for (std::size_t k = 0; k < b.shape(1); ++k) c(i, k) += a(i, j) * b(j, k);
  return c;
}

Array transposed(const Array& a) { return xt::transpose(a); }

// Arbitrary numbers.
Array numbers(std::size_t rows, std::size_t columns, double first) {
  return xt::sin(xt::reshape_view(first + xt::arange<double>(double(rows * columns)), {rows, columns}));
}

int main() {
  const Array target = numbers(3, 2, 50);
  tg::Parameter<double> x(numbers(3, 2, 1)), wq(numbers(2, 4, 10)), wk(numbers(2, 4, 20)), wv(numbers(2, 2, 30));

  tg::Tape tape;
  auto q = tg::matmul(x, wq), k = tg::matmul(x, wk), v = tg::matmul(x, wv);
  auto s = tg::matmul(q, tg::transpose(k, 0, 1)) / 2.0;
  auto p = tg::softmax(s, -1);
  auto y = tg::matmul(p, v);
  for (auto* step : {&q, &k, &v, &s, &p, &y}) step->retain_grad();
  tg::mse_loss(y, target).backward();

  const Array X = x.value(), Q = q.value(), K = k.value(), V = v.value(), P = p.value();
  const Array dy = (y.value() - target) / 3.0;  // 2 / 6, for six elements
  const Array dp = product(dy, transposed(V)), dv = product(transposed(P), dy);
  // Up to xtensor 0.25, a sum with keep_dims is wrong in a lazy expression, so it is evaluated separately.
  const Array rows = xt::sum(Array(dp * P), {1}, xt::keep_dims);
  const Array ds = P * (dp - rows);
  const Array dq = product(ds, K) / 2.0, dk = product(transposed(ds), Q) / 2.0;
  const Array dx =
      product(dq, transposed(wq.value())) + product(dk, transposed(wk.value())) + product(dv, transposed(wv.value()));

  check_close(y.grad(), dy);
  check_close(p.grad(), dp);
  check_close(v.grad(), dv);
  check_close(s.grad(), ds);
  check_close(q.grad(), dq);
  check_close(k.grad(), dk);
  check_close(wq.grad(), product(transposed(X), dq));
  check_close(wk.grad(), product(transposed(X), dk));
  check_close(wv.grad(), product(transposed(X), dv));
  check_close(x.grad(), dx);
}
