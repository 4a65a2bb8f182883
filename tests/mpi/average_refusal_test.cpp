// Invalid averages throw on all ranks, without a deadlock or any change.
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "../support/refused.hpp"
#include "ranks.hpp"

namespace {

const char* const kName = "average_gradients";

using TwoArrays = Two<double>;

}  // namespace

TEST_CASE("An invalid weight is refused on all ranks, and gradients stay unchanged") {
  const Group world;
  const double ends[] = {-1.0, -0x1p-1074, std::numeric_limits<double>::quiet_NaN(),
                         std::numeric_limits<double>::infinity()};
  for (const double bad : ends) {
    CAPTURE(bad);
    for_each_way([&](const Way& way) {
      TwoArrays model;
      const double weight = world.rank() == world.size() - 1 ? bad : 2;
      check_refused(kName, "weights of 0 or more on all ranks and above 0 on one, got",
                    [&] { way.average(world, tg::parameters(model), weight, [&] { model.sweep(of_rank(world)); }); });
      check_close(model.a.grad(), tg::Array<double>({3}, 2 * of_rank(world)), 0);
      CHECK_FALSE(model.b.has_grad());
    });
  }
}

TEST_CASE("Weights that are all 0 are refused") {
  const Group world;
  for_each_way([&](const Way& way) {
    TwoArrays model;
    check_refused(kName, "above 0 on one, got 0 on this rank and a sum of 0",
                  [&] { way.average(world, tg::parameters(model), 0, [&] { model.sweep(); }); });
    check_close(model.a.grad(), tg::Array<double>({3}, 2.0), 0);
  });
}

TEST_CASE("After an error the same average continues to work") {
  const Group world;
  TwoArrays model;
  GradientAverage<double> average(world, tg::parameters(model), 1);
  for (const double weight : {-1.0, 1.0, 0.0, 2.0}) {
    model.a.zero_grad();
    average.begin(weight);
    model.sweep(of_rank(world));
    if (weight > 0) {
      average.finish();
      check_close(model.a.grad(), tg::Array<double>({3}, mean_of_doubles(world)), 1e-15);
    } else {
      CHECK_THROWS_AS(average.finish(), std::invalid_argument);
    }
  }
}

TEST_CASE("Parameters of different sizes are refused on all ranks, also if some ranks or the sums agree") {
  const Group world;
  if (world.size() == 1) return;
  const std::vector<std::vector<std::vector<std::size_t>>> sizes_of_ranks{
      {{2}, {3}, {2}, {2}},              // one differs
      {{2}, {1}, {2}, {3}},              // the mean size equals that of two ranks
      {{2, 3}, {3, 2}, {2, 3}, {3, 2}},  // equal totals
      {{6}, {2, 4}, {6}, {1, 5}},        // divided differently
      {{2, 3}, {2, 3}, {2, 3}, {2, 3, 0}},
  };
  for (const auto& sizes : sizes_of_ranks) {
    if (world.size() == 2 && sizes[0] == sizes[1]) continue;
    for_each_way([&](const Way& way) {
      std::vector<tg::Parameter<double>> model;
      for (const std::size_t size : sizes[world.rank()]) model.emplace_back(tg::Array<double>({size}, 1.0));
      const auto sweep = [&] {
        const tg::Tape tape;
        for (auto& parameter : model) tg::sum(parameter * of_rank(world)).backward();
      };
      check_refused(kName, "of the same sizes on all ranks, got",
                    [&] { way.average(world, tg::parameters(model), 1, sweep); });
      for (auto& parameter : model)
        check_close(parameter.grad(), tg::Array<double>(parameter.shape(), of_rank(world)), 0);
    });
  }
  CHECK(world.sum(1) == static_cast<double>(world.size()));  // the ranks are still synchronized
}

TEST_CASE("Buckets of different sizes in bytes are refused, too") {
  const Group world;
  if (world.size() == 1) return;
  TwoArrays model;
  model.sweep();
  check_refused(kName, "of the same sizes on all ranks, got",
                [&] { world.average_gradients(tg::parameters(model), {.bucket_bytes = 1 + world.rank() * 100}); });
}

TEST_CASE("begin and finish must alternate, and a refused begin() leaves the weight of the first one") {
  const Group world;
  TwoArrays model;
  GradientAverage<double> average(world, tg::parameters(model));
  CHECK_THROWS_WITH_AS(average.finish(), "[average_gradients] expected begin() before finish(), got none",
                       std::logic_error);
  average.begin();
  CHECK_THROWS_WITH_AS(average.begin(of_rank(world) + 1),
                       "[average_gradients] expected finish() before the next begin(), got none", std::logic_error);
  model.sweep(of_rank(world));
  average.finish();
  check_close(model.a.grad(), tg::Array<double>({3}, mean_of_doubles(world)), 1e-15);
  CHECK_THROWS_AS(average.finish(), std::logic_error);
}

TEST_CASE("A second active average is refused, in float and in double, until the first is destroyed") {
  const Group world;
  TwoArrays model, other;
  tg::Parameter<float> in_float(tg::Array<float>{1, 2});
  GradientAverage<double> average(world, tg::parameters(model)), second(world, tg::parameters(other));
  GradientAverage<float> third(world, tg::Parameters<float>{in_float});
  average.begin();
  CHECK_THROWS_AS(second.begin(), std::logic_error);
  CHECK_THROWS_AS(third.begin(), std::logic_error);
  CHECK_THROWS_AS(world.average_gradients(tg::parameters(other)), std::logic_error);
  model.sweep(of_rank(world));
  average.finish();
  check_close(model.a.grad(), tg::Array<double>({3}, mean_of_doubles(world)), 1e-15);
  second.begin();
  second.finish();
  third.begin();
  third.finish();
}

TEST_CASE("A second backward pass between begin and finish is refused, and the first one's gradients are averaged") {
  const Group world;
  TwoArrays model;
  tg::parameters(model);  // sets their names
  GradientAverage<double> average(world, tg::parameters(model));
  average.begin();
  model.sweep(of_rank(world));
  CHECK_THROWS_WITH_AS(
      model.sweep(),
      "[average_gradients] expected one backward pass between begin() and finish(), got a second one that "
      "reaches a (3); to accumulate, call begin() before the last pass",
      std::logic_error);
  average.finish();
  check_close(model.a.grad(), tg::Array<double>({3}, mean_of_doubles(world)), 1e-15);
  model.a.zero_grad();
  model.sweep();  // alone
  check_close(model.a.grad(), tg::Array<double>({3}, 2.0), 0);
}

TEST_CASE("Null, undefined and duplicate parameters, and buckets of 0 bytes, are refused on each rank") {
  const Group world;
  tg::Parameter<double> p(tg::Array<double>{1, 2}), undefined;
  p.set_name("p");
  const auto refuses = [&](const std::string& words, const tg::Parameters<double>& parameters, std::size_t bytes = 1) {
    check_refused(kName, words, [&] { GradientAverage<double>(world, parameters, bytes); });
    check_refused(kName, words, [&] { world.average_gradients(parameters, {.bucket_bytes = bytes}); });
  };
  refuses("parameters, got none", {});
  refuses("parameters with a value, got an undefined one at index 1", {p, undefined});
  refuses("each parameter once, got p (2) twice, at indices 0 and 1", {p, p});
  refuses("buckets of 1 byte or more, got 0", {p}, 0);
}
