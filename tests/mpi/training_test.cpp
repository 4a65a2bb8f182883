// Training on several ranks equals training on one with the whole batch.
#include <cstddef>

#include "ranks.hpp"

namespace {

/// Takes twenty steps of both. Each step has other data and another division among the ranks.
template <class Optimizer, class Average>
void check_training(const typename Optimizer::Options& options, const Average& average_in) {
  const Group world;
  Net<double> net = make_net<double>(1 + world.rank());  // a different model on each
  world.broadcast(net);
  Net<double> alone = net;
  Optimizer optimizer(tg::parameters(net), options), of_alone(tg::parameters(alone), options);
  auto average = average_in(world, net);
  for (std::size_t step = 0; step < 20; ++step) {
    Batch whole = whole_batch(step);
    xt::view(whole.labels, xt::range(step % 5, step % 5 + 2)) = -100;
    const Batch mine = part_of(whole, world);
    double counted = 0;
    for (const auto label : mine.labels) counted += label == -100 ? 0 : 1;
    const tg::Tape tape;
    optimizer.zero_grad();
    of_alone.zero_grad();
    average(counted, tg::cross_entropy(net(mine.ids), mine.labels));
    tg::cross_entropy(alone(whole.ids), whole.labels).backward();
    optimizer.step();
    of_alone.step();
  }
  const auto trained = tg::named_parameters(net), expected = tg::named_parameters(alone);
  for (std::size_t i = 0; i < trained.size(); ++i) {
    CAPTURE(trained[i].first);
    check_close(trained[i].second->value(), expected[i].second->value(), 1e-12);
  }
  CHECK_NOTHROW(world.check_equal(net));
  CHECK_NOTHROW(world.check_equal(optimizer));
}

const auto kAfter = [](const Group& world, Net<double>& net) {
  return [&](double weight, const tg::Tensor<double>& loss) {
    loss.backward();
    world.average_gradients(tg::parameters(net), {.weight = weight});
  };
};

const auto kWithin = [](const Group& world, Net<double>& net) {
  return [average = GradientAverage<double>(world, tg::parameters(net), 256)](double weight,
                                                                              const tg::Tensor<double>& loss) mutable {
    average.begin(weight);
    loss.backward();
    average.finish();
  };
};

template <class Optimizer> void check_both_ways(const typename Optimizer::Options& options) {
  check_training<Optimizer>(options, kAfter);
  check_training<Optimizer>(options, kWithin);
}

}  // namespace

// With a small eps, Adam would magnify a last bit if the mean of squares is near 0.
TEST_CASE("Twenty steps on all ranks match one process on the whole batches") {
  check_both_ways<tg::SGD<double>>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  check_both_ways<tg::AdamW<double>>({.lr = 1e-2, .eps = 1e-4, .weight_decay = 0.1});
}
