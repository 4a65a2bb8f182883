// Gradients of an expression over xtensor arrays, and errors for misuse.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>

#include <stdexcept>

#include "check.hpp"

namespace tg = tapegrad;
using Array = xt::xarray<double>;  // xtensor's type: tg::Array converts from and to it
using Tensor = tg::Tensor<double>;

int main() {
  // With y = x w + b and L = sum(y^2) / 2: dL/dy = y, dL/dw = x^T y, and dL/db is the sum of y's rows.
  const Array x{{1, 2}, {-1, 3}};
  tg::Parameter<double> w(Array{{0.5, -1}, {0.25, 2}}), b(Array{1, -1});
  const Array y{{2, 2}, {1.25, 6}}, dw{{0.75, -4}, {7.75, 22}}, db{3.25, 8};
  {
    tg::Tape tape;
    Tensor output = tg::matmul(Tensor(x), w) + b;
    output.retain_grad();
    const Tensor loss = tg::sum(output * output) / 2.0;
    check_close(output.value(), y);
    check(loss.item() == xt::sum(y * y)() / 2);
    loss.backward();
    check_close(output.grad(), y);
    check_close(w.grad(), dw);
    check_close(b.grad(), db);
    check_error<std::logic_error>([&] { loss.backward(); }, {"backward"});  // the graph was consumed
  }

  // A second backward pass accumulates its gradients.
  {
    tg::Tape tape;
    const Tensor output = tg::matmul(Tensor(x), w) + b;
    (tg::sum(output * output) / 2.0).backward();
  }
  check_close(w.grad(), Array(2 * dw));
  w.zero_grad();
  check_close(w.grad(), Array(xt::zeros<double>({2, 2})));
  check_close(b.grad(), Array(2 * db));

  // An input read several times gets the sum of its gradients: d(a^3 + 2a)/da = 3a^2 + 2.
  tg::Parameter<double> a(Array{-2});
  {
    tg::Tape tape;
    tg::sum(a * a * a + 2.0 * a).backward();
  }
  check_close(a.grad(), Array{14});

  // Nothing is recorded without a tape.
  const Tensor unrecorded = tg::sum(a * a);
  check(unrecorded.item() == 4);
  check_error<std::logic_error>([&] { unrecorded.backward(); }, {"Tape"});

  // A rule that throws leaves all gradients as they were.
  {
    const tg::Tape tape;
    const Tensor broken = tg::record("broken", w.value() + 1.0, {w},
                                     [](const auto&, auto&) { throw std::runtime_error("out of order"); });
    const Tensor loss = tg::sum(broken) + tg::sum(b);
    check_error<std::runtime_error>([&] { loss.backward(); }, {"out of order"});
    check(!w.has_grad());
    check_close(b.grad(), Array(2 * db));
  }

  check_error<std::invalid_argument>(
      [&] {
        tg::matmul(Tensor(x), Tensor(Array{1, 2, 3}));
      },
      {"matmul", "(2, 2)", "(3)"});
}
