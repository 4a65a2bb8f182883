// Misuse of tapes throws and changes nothing; unusual but correct uses work.
#include <tapegrad/tapegrad.hpp>

#include <stdexcept>

#include "check.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Tensor = tg::Tensor<double>;

struct Model {
  tg::Parameter<double> u{Array{2, -1}}, v{Array{0.5, 4}};
  TAPEGRAD_FIELDS(u, v)
};

void a_const_tape_records() {
  Model model;
  const tg::Tape tape;
  tg::sum(model.u * model.v).backward();
  check_close(model.u.grad(), Array{0.5, 4});
}

void a_rule_that_throws_leaves_all_gradients() {
  Model model;
  tg::Tape tape;
  const Tensor y = tg::record("broken", model.u.value() + 1.0, {model.u},
                              [](const auto&, auto&) { throw std::runtime_error("out of order"); });
  const Tensor loss = tg::sum(model.v * model.v) + tg::sum(y);
  check_error<std::runtime_error>([&] { loss.backward(); }, {"out of order"});
  check(!model.u.has_grad() && !model.v.has_grad());
}

void a_hook_records_and_may_not_sweep_its_own_tape() {
  Model model;
  tg::Tape tape;
  Tensor y = model.u * model.v;
  const Tensor loss = tg::sum(y * y), another = tg::sum(model.v);
  int called = 0;
  y.register_hook([&](Array&) {
    ++called;
    Tensor z = model.u * 2.0;
    for (int i = 0; i < 1000; ++i) z = z + model.u;  // grows the recording
    check_error<std::logic_error>([&] { another.backward(); }, {"backward"});
  });
  loss.backward();
  check(called == 1);
  check_close(model.u.grad(), Array{1, -32});  // 2 u v^2
  check_close(model.v.grad(), Array{4, 8});    // 2 u^2 v
}

void a_hook_sweeps_a_tape_of_its_own() {
  Model model;
  tg::Tape tape;
  Tensor y = model.u * model.v;
  y.register_hook([&](Array&) {
    Model other;
    tg::Tape own;
    tg::sum(other.u * other.u).backward();
    check_close(other.u.grad(), Array{4, -2});
  });
  tg::sum(y).backward();
  check_close(model.u.grad(), Array{0.5, 4});
  check_close(model.v.grad(), Array{2, -1});
}

int main() {
  a_const_tape_records();
  a_rule_that_throws_leaves_all_gradients();
  a_hook_records_and_may_not_sweep_its_own_tape();
  a_hook_sweeps_a_tape_of_its_own();
}
