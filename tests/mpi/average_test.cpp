// The weighted mean of the ranks' gradients is the gradient of the whole batch, however it is divided.
#include <vector>

#include "../support/special_values.hpp"
#include "ranks.hpp"

namespace {

template <class T> constexpr double kTolerance = sizeof(T) == 8 ? 1e-12 : 1e-5;

template <class T> void sweep(const Net<T>& net, const Batch& batch, T factor = 1) {
  const tg::Tape tape;
  (tg::cross_entropy(net(batch.ids), batch.labels) * factor).backward();
}

}  // namespace

TEST_CASE_TEMPLATE("Ranks with parts of unequal length get the gradient of the whole batch", T, float, double) {
  const Group world;
  const Batch whole = whole_batch(), mine = part_of(whole, world);
  Net<T> alone = make_net<T>();
  sweep(alone, whole);
  for_each_way([&](const Way& way) {
    Net<T> net = make_net<T>();
    const tg::Tape tape;
    const tg::Tensor<T> loss = tg::cross_entropy(net(mine.ids), mine.labels);
    way.average(world, tg::parameters(net), mine.rows(), [&] { loss.backward(); });
    check_gradients(net, alone, kTolerance<T>);
    check_gradients_alike(world, net);
    CHECK_FALSE(net.unused.weight.has_grad());
  });
}

TEST_CASE("Gradients of a rank with weight 0 are ignored, NaN or not") {
  const Group world;
  const bool counts = world.rank() + 1 == world.size();  // only the last rank
  for_each_way([&](const Way& way) {
    Two<double> model;
    way.average(world, tg::parameters(model), counts ? 3 : 0, [&] {
      if (!counts) model.b.set_grad(tg::Array<double>{kNaN, 7.0});
      const tg::Tape tape;
      tg::sum(model.a * (counts ? 2.0 : kNaN)).backward();
    });
    check_close(model.a.grad(), tg::Array<double>{2, 2, 2}, 0);
    if (world.size() > 1) CHECK_FALSE(model.b.has_grad());
  });
}

TEST_CASE("A parameter that a rank's loss does not reach counts as zero there") {
  const Group world;
  const double ranks = static_cast<double>(world.size());
  for_each_way([&](const Way& way) {
    Two<double> model;
    const tg::Tape tape;
    const tg::Tensor<double> loss =
        world.rank() == 0 ? tg::sum(model.a * 2.0) : tg::sum(model.b * 3.0 * of_rank(world));
    way.average(world, tg::parameters(model), 1, [&] { loss.backward(); });
    check_close(model.a.grad(), tg::Array<double>({3}, 2.0 / ranks), 1e-15);
    CHECK(model.b.has_grad() == (world.size() > 1));
    const double sum = 3 * (ranks * (ranks + 1) / 2 - 1);  // the factors on all ranks but the first
    check_close(model.b.grad(), tg::Array<double>({2}, sum / ranks), 1e-15);
  });
}

TEST_CASE("Of several backward passes that accumulate, the last is between begin and finish") {
  const Group world;
  const Batch whole = whole_batch(), mine = part_of(whole, world);
  const std::vector<double> factors{1, 0.25, -2};
  Net<double> alone = make_net<double>();
  for (const double factor : factors) sweep(alone, whole, factor);
  for_each_way([&](const Way& way) {
    Net<double> net = make_net<double>();
    sweep(net, mine, factors[0]);
    sweep(net, mine, factors[1]);
    way.average(world, tg::parameters(net), mine.rows(), [&] { sweep(net, mine, factors[2]); });
    check_gradients(net, alone, 1e-12);
  });
}

TEST_CASE("Gradients of an earlier backward pass are averaged if the last one does not reach the parameter") {
  const Group world;
  for_each_way([&](const Way& way) {
    Two<double> model;
    model.b.set_grad(tg::Array<double>{of_rank(world), 1.0});
    way.average(world, tg::parameters(model), 1, [&] {
      const tg::Tape tape;
      tg::sum(model.a).backward();
    });
    check_close(model.b.grad(), tg::Array<double>{mean_of_doubles(world) / 2, 1.0}, 1e-15);
  });
}

TEST_CASE("Hooks registered before the average change the gradients before it") {
  const Group world;
  for_each_way([&](const Way& way) {
    Two<double> model;
    model.a.register_hook([&](tg::Array<double>& gradient) { gradient *= of_rank(world); });
    const tg::Tape tape;
    const auto loss = tg::sum(model.a * 2.0);
    way.average(world, tg::parameters(model), 1, [&] { loss.backward(); });
    check_close(model.a.grad(), tg::Array<double>({3}, mean_of_doubles(world)), 1e-15);
  });
}

TEST_CASE("Frozen parameters stay without a gradient, and empty ones are accepted") {
  struct Odd {
    tg::Parameter<double> empty{tg::Array<double>(tg::Shape{0, 3})}, frozen{tg::Array<double>{1, 2}},
        number{tg::Array<double>(tg::Shape{}, 2.0)};
    TAPEGRAD_FIELDS(empty, frozen, number)
  };
  const Group world;
  for_each_way([&](const Way& way) {
    Odd model;
    model.frozen.set_requires_grad(false);
    const tg::Tape tape;
    const auto loss = model.number * tg::sum(model.frozen) + tg::sum(model.empty);
    way.average(world, tg::parameters(model), 1, [&] { loss.backward(); });
    CHECK(model.number.grad()() == 3.0);
    CHECK_FALSE(model.frozen.has_grad());
    CHECK(model.empty.has_grad());
  });
}

TEST_CASE("Averaging does not change a shared copy of a gradient") {
  const Group world;
  Two<double> model;
  model.a.set_grad(tg::Array<double>{of_rank(world), 0, 0});
  const tg::Tensor<double> handle = model.a;
  const tg::Array<double> kept = handle.grad();
  world.average_gradients(tg::parameters(model));
  CHECK(kept(0) == of_rank(world));
  CHECK(model.a.grad()(0) == mean_of_doubles(world) / 2);
}

TEST_CASE("Weights of any magnitude give the weighted mean") {
  const Group world;
  const double n = static_cast<double>(world.size());
  for (const double unit : {1e-300, 1.0, 1e300}) {
    Two<double> model;
    model.a.set_grad(tg::Array<double>({3}, of_rank(world)));
    world.average_gradients(tg::parameters(model), {.weight = unit * of_rank(world)});
    check_close(model.a.grad(), tg::Array<double>({3}, (2 * n + 1) / 3), 1e-14);  // sum of r^2 / sum of r
  }
}

TEST_CASE("A group of one sums nothing, and MPI is not initialized without mpirun") {
  const Group world;
  CHECK((world.size() == 1 || mpi_has_begun()));
  if (world.size() > 1) return;
  started_sums().clear();
  Two<double> model;
  model.a.set_grad(tg::Array<double>{1, 2, 3});
  GradientAverage<double> average(world, tg::parameters(model));
  average.begin();
  average.finish();
  world.average_gradients(tg::parameters(model));
  world.broadcast(model);
  world.check_equal(model);
  CHECK(world.sum(2.5) == 2.5);
  CHECK(world.sum(tg::Array<float>{1, 2}) == tg::Array<float>{1, 2});
  CHECK(world.any(true));
  CHECK_FALSE(world.any(false));
  CHECK(world.all(true));
  CHECK_FALSE(world.all(false));
  check_close(model.a.grad(), tg::Array<double>{1, 2, 3}, 0);
  CHECK(started_sums().empty());
}

// ---- training on several ranks equals training on one --------------------------------------------------------------

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
