// Sums of gradients during the backward pass: when they start, and in which order.
#include <mpi.h>

#include <optional>
#include <utility>
#include <vector>

#include "ranks.hpp"

std::vector<std::size_t>& started_sums() {
  static std::vector<std::size_t> sums;
  return sums;
}

bool mpi_has_begun() {
  int has_begun = 0;
  MPI_Initialized(&has_begun);
  return has_begun != 0;
}

// MPI's profiling interface: programs may replace any function and call the original under its PMPI name.
extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op operation,
                              MPI_Comm ranks, MPI_Request* request) {
  started_sums().push_back(static_cast<std::size_t>(count));
  return PMPI_Iallreduce(from, to, count, type, operation, ranks, request);
}

namespace {

using Sizes = std::vector<std::size_t>;

/// Three parameters. Gradients arrive in the reverse order of use.
struct Three {
  tg::Parameter<float> a{tg::Array<float>({2}, 1.0F)}, b{tg::Array<float>({3}, 2.0F)}, c{tg::Array<float>({5}, 3.0F)};
  TAPEGRAD_FIELDS(a, b, c)

  /// Uses the parameters in this order.
  tg::Tensor<float> use(const std::vector<std::size_t>& order) const {
    const tg::Parameter<float>* const all[] = {&a, &b, &c};
    tg::Tensor<float> total(tg::Array<float>(tg::Shape{}, 0.0F));
    for (const std::size_t i : order) total = total + tg::sum(*all[i] * static_cast<float>(i + 1));
    return total;
  }
};

/// The sizes of sums with one bucket per parameter. Each has one more number, the count of ranks with a gradient.
Sizes sums_of(const Sizes& parameters) {
  Sizes sizes;
  for (const std::size_t i : parameters) sizes.push_back((i == 0 ? 2 : i == 1 ? 3 : 5) + 1);
  return sizes;
}

/// The sums of a step, except the first one over a few numbers for all buckets.
struct Step {
  Sizes within, after;  // the backward pass
};

Step run_step(GradientAverage<float>& average, Three& model, const Sizes& order) {
  tg::zero_grad(model);
  const tg::Tape tape;
  const auto loss = model.use(order);
  average.begin();
  started_sums().clear();
  if (!order.empty()) loss.backward();
  Step step{std::exchange(started_sums(), {}), {}};
  average.finish();
  step.after = std::exchange(started_sums(), {});
  return step;
}

void check_means(const Group& world, const Three& model) {
  if (world.size() == 1) return;
  CHECK(model.a.grad() == tg::Array<float>({2}, 1.0F));
  CHECK(model.b.grad() == tg::Array<float>({3}, 2.0F));
  CHECK(model.c.grad() == tg::Array<float>({5}, 3.0F));
}

}  // namespace

TEST_CASE("Each bucket is sent as soon as it is complete, the last used first") {
  const Group world;
  if (world.size() == 1) return;
  Three model;
  GradientAverage<float> average(world, tg::parameters(model), 1);
  Sizes begun;  // by each parameter's gradient, before its own sum
  for (const auto& parameter : tg::parameters(model))
    parameter->register_hook([&](auto&) { begun.push_back(started_sums().size()); });
  const Step first = run_step(average, model, {0, 1, 2});  // finds out the order
  CHECK(first.within.empty());
  CHECK(first.after == sums_of({2, 1, 0}));
  check_means(world, model);
  begun.clear();
  const Step step = run_step(average, model, {0, 1, 2});
  CHECK(step.within == sums_of({2, 1, 0}));
  CHECK(begun == Sizes{1, 2, 3});
  CHECK(step.after.empty());
  check_means(world, model);
}

TEST_CASE("The order is that of rank 0's gradients in the first pass") {
  const Group world;
  if (world.size() == 1) return;
  for (const Sizes& of_others : {Sizes{0, 1, 2}, Sizes{2, 0, 1}, Sizes{1}, Sizes{}}) {
    Three model;
    GradientAverage<float> average(world, tg::parameters(model), 1);
    const Sizes own = world.rank() == 0 ? Sizes{2, 1, 0} : of_others;
    run_step(average, model, own);
    const Step second = run_step(average, model, {2, 1, 0});
    CHECK(second.within == sums_of({0, 1, 2}));
    CHECK(second.after.empty());
    check_means(world, model);

    // Gradients in another order wait for their turn.
    const Step third = run_step(average, model, world.rank() == 0 ? Sizes{2, 1, 0} : Sizes{1, 0, 2});
    if (world.rank() > 0) CHECK(third.within == sums_of({0, 1, 2}));
    CHECK(third.within.size() + third.after.size() == 3);
    check_means(world, model);
  }
}

TEST_CASE("Parameters that rank 0's first loss does not reach come last") {
  const Group world;
  if (world.size() == 1) return;
  Three model;
  GradientAverage<float> average(world, tg::parameters(model), 1);
  const Step first = run_step(average, model, {0, 1});
  CHECK(first.after == sums_of({1, 0, 2}));
  const Step second = run_step(average, model, {0, 1});
  CHECK(second.within == sums_of({1, 0}));
  CHECK(second.after == sums_of({2}));
  CHECK_FALSE(model.c.has_grad());
}

TEST_CASE("The group may be used between begin and finish, while ranks have started different sums") {
  const Group world;
  const double ranks = static_cast<double>(world.size());
  Three model;
  GradientAverage<float> average(world, tg::parameters(model), 1);
  for (int step = 0; step < 3; ++step) {
    tg::zero_grad(model);
    const tg::Tape tape;
    const auto loss = world.rank() == 0 ? model.use({2, 1, 0}) : model.use({1, 2});
    average.begin();
    CHECK(world.sum(1) == ranks);
    loss.backward();
    CHECK(world.sum(of_rank(world)) == ranks * (ranks + 1) / 2);
    CHECK(world.sum(tg::Array<float>{1, 2, 3})(2) == 3 * static_cast<float>(ranks));
    CHECK_NOTHROW(world.check_equal(model));
    average.finish();
    CHECK(model.a.grad()(0) == static_cast<float>(1 / ranks));
    CHECK(model.c.grad()(0) == 3);
  }
}

TEST_CASE("Buckets are filled to their size, and exceeded only by a single parameter") {
  const Group world;
  if (world.size() == 1) return;
  Three model;
  const auto sizes = [&](std::size_t bucket_bytes) {
    GradientAverage<float> average(world, tg::parameters(model), bucket_bytes);
    run_step(average, model, {0, 1, 2});
    const Step step = run_step(average, model, {0, 1, 2});
    check_means(world, model);
    return step.within;
  };
  CHECK(sizes(20) == Sizes{6, 7});   // c has 20 bytes; b and a share a bucket
  CHECK(sizes(21) == Sizes{10, 3});  // c and b share one
  CHECK(sizes(32) == Sizes{10, 3});
  CHECK(sizes(33) == Sizes{13});
}

TEST_CASE("Averages after the backward pass also use buckets") {
  const Group world;
  if (world.size() == 1) return;
  Three model;
  for (const auto& parameter : tg::parameters(model)) parameter->set_grad(tg::Array<float>(parameter->shape(), 1.0F));
  started_sums().clear();
  world.average_gradients(tg::parameters(model), {.bucket_bytes = 20});
  const Sizes sums = std::exchange(started_sums(), {});
  REQUIRE(sums.size() == 3);
  CHECK(Sizes(sums.begin() + 1, sums.end()) == Sizes{6, 7});
}

TEST_CASE("A bucket of many numbers is averaged on several threads") {
  const Group world;
  tg::Parameter<float> large(tg::Array<float>({1'000'003}, 0.0F)), small(tg::Array<float>{1, 2});
  for_each_way([&](const Way& way) {
    large.set_grad(tg::Array<float>({1'000'003}, static_cast<float>(of_rank(world))));
    small.zero_grad();
    way.average(world, tg::Parameters<float>{large, small}, 1, [&] {
      const tg::Tape tape;
      tg::sum(small * 3.0F).backward();
    });
    const float mean = (1.0F + static_cast<float>(world.size())) / 2;
    CHECK(large.grad() == tg::Array<float>({1'000'003}, mean));
    CHECK(small.grad() == tg::Array<float>{3, 3});
  });
}

TEST_CASE("A moved or destroyed average leaves no hooks") {
  const Group world;
  Three model;
  std::optional<GradientAverage<float>> average(std::in_place, world, tg::parameters(model), 1);
  GradientAverage<float> moved = std::move(*average);
  average.reset();
  run_step(moved, model, {0, 1, 2});
  check_means(world, model);

  moved = GradientAverage<float>(world, tg::parameters(model), 100);
  run_step(moved, model, {1, 2, 0});
  check_means(world, model);
  { const GradientAverage<float> gone = std::move(moved); }
  int called = 0;
  model.a.register_hook([&](auto&) { ++called; });
  const tg::Tape tape;
  model.use({0, 1, 2}).backward();
  CHECK(called == 1);
}

TEST_CASE("A model may be destroyed before its average") {
  const Group world;
  std::optional<Three> model(std::in_place);
  GradientAverage<float> average(world, tg::parameters(*model), 1);
  run_step(average, *model, {0, 1, 2});
  model.reset();
  average.begin();
  CHECK_NOTHROW(average.finish());
}
