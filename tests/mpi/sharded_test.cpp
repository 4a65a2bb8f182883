// Sharded optimizers step like undivided ones, bit for bit.
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "../support/every_optimizer.hpp"
#include "ranks.hpp"

namespace {

using tg::mpi::Sharded;

static_assert(!std::is_reference_v<decltype(std::declval<Sharded<tg::SGD<float>>>().owners())>);
static_assert(std::is_reference_v<decltype(std::declval<const Sharded<tg::SGD<float>>&>().owners())>);

/// Two groups with different options: matrices, and the other parameters.
template <class Optimizer> Optimizer make_optimizer(Net<float>& net) {
  const auto chosen = [&](bool matrices) {
    return tg::parameters(net, [=](auto, const auto& p) { return (p.dimension() == 2) == matrices; });
  };
  Optimizer optimizer(chosen(true), stateful_options<Optimizer>(0.05));
  auto of_others = stateful_options<Optimizer>(0.05);
  of_others.lr = 0.01;
  of_others.weight_decay = 0;
  optimizer.add_group(chosen(false), of_others);
  return optimizer;
}

/// The same gradients of a step on all ranks. unused.bias has none, and unused.weight has one in some steps.
void set_gradients(Net<float>& net, std::size_t step) {
  tg::Generator generator(1000 + step);
  for (auto& [name, parameter] : tg::named_parameters(net)) {
    const auto gradient = tg::normal<float>(parameter->shape(), 0, 1, generator);
    parameter->zero_grad();
    if (name != "unused.bias" && (name != "unused.weight" || step % 3 == 1)) parameter->set_grad(gradient);
  }
}

/// A model and its copy with an undivided optimizer: their values stay equal to the bit.
template <class Optimizer> struct Twins {
  Net<float> net = make_net<float>(), whole_net = net;
  Optimizer optimizer = make_optimizer<Optimizer>(net), whole = make_optimizer<Optimizer>(whole_net);
  std::size_t step = 0;

  /// Takes steps of both, and returns the undivided optimizer.
  const Optimizer& run(auto& stepped, std::size_t steps) {
    for (const std::size_t end = step + steps; step < end; ++step) {
      set_gradients(net, step);
      set_gradients(whole_net, step);
      stepped.step();
      whole.step();
      check_same_values(net, whole_net);
    }
    return whole;
  }
};

std::size_t whole_state_bytes(const auto& optimizer) {
  std::size_t bytes = 0;
  for (const auto& named : optimizer.state()) {
    const auto& state = named.second;
    const auto add = [&](const auto& array) {
      if (array.has_value()) bytes += array.value().size() * sizeof(float);
    };
    if constexpr (requires { state.exp_avg; })
      add(state.exp_avg), add(state.exp_avg_sq);
    else
      add(state.momentum_buffer);
  }
  return bytes;
}

}  // namespace

TEST_CASE_TEMPLATE("Ten steps of a divided optimizer give the same bits and state as an undivided one", Optimizer,
                   OPTIMIZERS(float)) {
  const Group world;
  Twins<Optimizer> twins;
  Sharded sharded(world, twins.optimizer);
  const double whole_bytes = static_cast<double>(whole_state_bytes(twins.run(sharded, 10)));
  CHECK_NOTHROW(world.check_equal(twins.net));
  CHECK(world.sum(static_cast<double>(sharded.state_bytes())) == whole_bytes);
  if (world.size() > 1) CHECK(static_cast<double>(sharded.state_bytes()) < whole_bytes);

  sharded.gather();
  if (world.rank() == 0) CHECK(tg::save_bytes(twins.optimizer) == tg::save_bytes(twins.whole));
  sharded.keep_own();
  CHECK(world.sum(static_cast<double>(sharded.state_bytes())) == whole_bytes);

  [[maybe_unused]] const Sharded other = std::move(sharded);  // copies
  twins.run(sharded, 2);
  sharded.gather();
  if (world.rank() == 0) CHECK(tg::save_bytes(twins.optimizer) == tg::save_bytes(twins.whole));
}

TEST_CASE_TEMPLATE("A divided optimizer continues from an undivided one, and the reverse", Optimizer,
                   OPTIMIZERS(float)) {
  const Group world;
  Twins<Optimizer> twins;
  twins.run(twins.optimizer, 3);
  {
    Sharded sharded(world, twins.optimizer);
    if (world.size() > 1) CHECK(sharded.state_bytes() < whole_state_bytes(twins.whole));
    twins.run(sharded, 3);
    sharded.gather();
  }
  world.broadcast(twins.optimizer);
  CHECK(tg::save_bytes(twins.optimizer) == tg::save_bytes(twins.whole));
  twins.run(twins.optimizer, 3);
}

TEST_CASE("Of N equal parameters each rank stores the state of its share") {
  const Group world;
  std::vector<tg::Linear<float>> layers;
  for (int i = 0; i < 8; ++i) layers.emplace_back(10, 10, tg::LinearOptions{.bias = false});
  tg::AdamW<float> optimizer(tg::parameters(layers));
  Sharded sharded(world, optimizer);
  CHECK(sharded.state_bytes() == 0);
  for (const auto& parameter : tg::parameters(layers)) parameter->set_grad(tg::Array<float>(parameter->shape(), 1.0F));
  sharded.step();
  CHECK(sharded.state_bytes() == 8 * 2 * 400 / world.size());
  std::vector<std::size_t> owned(world.size());
  for (const std::size_t owner : sharded.owners()) ++owned.at(owner);
  CHECK(owned == std::vector<std::size_t>(world.size(), 8 / world.size()));
}

TEST_CASE("Parameters are divided in order of size, each to the rank with the least") {
  using Owners = std::vector<std::size_t>;
  using tg::mpi::detail::divide;
  CHECK(divide({}, 2) == Owners{});
  CHECK(divide({5, 6}, 1) == Owners{0, 0});
  CHECK(divide({1, 10, 2, 7, 4}, 2) == Owners{1, 0, 0, 1, 1});  // 10 | 7 + 4, 10 + 2 | 7 + 4 + 1
  CHECK(divide({3, 3, 3, 3}, 4) == Owners{0, 1, 2, 3});
  CHECK(divide({4, 4}, 4) == Owners{0, 1});
}

TEST_CASE("A divided optimizer throws the optimizer's exceptions") {
  const Group world;
  tg::Parameter<float> a(tg::Array<float>{1, 2}), b(tg::Array<float>{1, 2});
  tg::SGD<float> optimizer({a, b});
  Sharded sharded(world, optimizer);
  { const tg::Parameter<float> ends = std::move(b); }
  a.set_grad(tg::Array<float>{1, 1});
  CHECK_THROWS_AS(sharded.step(), std::logic_error);
  CHECK(a.value() == tg::Array<float>{1, 2});
}

TEST_CASE("A value shared with other tensors is not changed for them on any rank") {
  const Group world;
  Net<float> net = make_net<float>();
  const Net<float> copy = net;
  const tg::Array<float> before = copy.head.weight.value();
  tg::AdamW<float> optimizer = make_optimizer<tg::AdamW<float>>(net);
  Sharded sharded(world, optimizer);
  set_gradients(net, 1);
  sharded.step();
  CHECK(copy.head.weight.value() == before);
  CHECK(net.head.weight.value() != before);
}
