// Communication of the ranks: broadcasts, sums, equality checks and random numbers.
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "../support/refused.hpp"
#include "ranks.hpp"

namespace {

/// Every kind of member a run can have.
struct Run {
  Net<double> net;
  tg::Parameter<float> none;
  std::optional<tg::Array<float>> given, taken;
  std::vector<double> losses;
  std::string phase;
  std::optional<std::string> note;
  tg::Generator noise;
  tg::RandomState random;
  std::size_t step;
  bool is_first;
  tg::AdamW<double> optimizer;
  TAPEGRAD_FIELDS(net, none, given, taken, losses, phase, note, noise, random, step, is_first, optimizer)

  explicit Run(std::size_t number)
      : net(make_net<double>(number)),
        losses(number, 0.5),
        phase(number, 'x'),
        noise(number),
        step(number),
        is_first(number == 1),
        optimizer(tg::parameters(net), {.lr = 0.5 / static_cast<double>(number)}) {
    if (number == 1) given = tg::Array<float>{1, 2}, note = "of rank 0";
    if (number != 1) taken = tg::Array<float>{3};
    for (std::size_t i = 0; i < number; ++i) {
      for (const auto& parameter : tg::parameters(net))
        parameter->set_grad(tg::Array<double>(parameter->shape(), static_cast<double>(number)));
      optimizer.step();
    }
    tg::manual_seed(100 + number);
  }
};

/// The numbers of all ranks, in their order.
std::vector<double> of_all(const Group& world, double number) {
  tg::Array<double> numbers({world.size()}, 0.0);
  numbers(world.rank()) = number;
  numbers = world.sum(numbers);
  return {numbers.begin(), numbers.end()};
}

std::string message_of(const Group& world, const auto& model) {
  try {
    world.check_equal(model);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

/// The message for a field that differs on the rank.
std::string difference(const std::string& field, std::size_t rank) {
  return "[check_equal] expected " + field + " to be equal on all ranks, got a different value on rank " +
         std::to_string(rank) + " than on rank 0";
}

}  // namespace

// ---- broadcast ------------------------------------------------------------------------------------------------------

TEST_CASE("After a broadcast all fields equal rank 0's") {
  const Group world;
  Run run(world.rank() + 1);
  const Run first(1);
  tg::manual_seed(100 + world.rank() + 1);
  world.broadcast(run);
  CHECK(tg::save_bytes(run) == tg::save_bytes(first));
  CHECK(tg::default_generator() == tg::Generator(101));
  CHECK(run.noise == tg::Generator(1));
  CHECK(run.note == "of rank 0");
  CHECK_FALSE(run.taken.has_value());
  CHECK_FALSE(run.none.defined());
  CHECK(run.optimizer.state(run.net.head.weight).step == 1);
  CHECK_NOTHROW(world.check_equal(run));
  tg::manual_seed(0);
}

TEST_CASE("A broadcast to a model of other shapes names the first difference, on the rank that has it") {
  const Group world;
  if (world.size() == 1) return;
  tg::Linear<double> layer(2, world.rank() == 1 ? 3 : 4);
  if (world.rank() == 1)
    CHECK_THROWS_WITH_AS(world.broadcast(layer), Contains("weight"), std::runtime_error);
  else
    CHECK_NOTHROW(world.broadcast(layer));
}

// ---- sums -----------------------------------------------------------------------------------------------------------

TEST_CASE("Numbers, arrays and conditions are combined over the ranks") {
  const Group world;
  const double ranks = static_cast<double>(world.size()), all = ranks * (ranks + 1) / 2;
  CHECK(world.sum(of_rank(world)) == all);
  tg::Array<float> floats({2, 3}, static_cast<float>(of_rank(world)));
  floats(1, 2) = 0.5F;
  const tg::Array<float> sum = world.sum(floats);
  CHECK(sum.shape() == tg::Shape{2, 3});
  CHECK(sum(0, 0) == static_cast<float>(all));
  CHECK(sum(1, 2) == static_cast<float>(ranks) / 2);
  CHECK(floats(0, 0) == static_cast<float>(of_rank(world)));  // the rank's own array is unchanged
  CHECK(world.sum(tg::Array<double>(tg::Shape{0})).size() == 0);

  const bool is_last = world.rank() + 1 == world.size();
  CHECK(world.any(is_last));
  CHECK_FALSE(world.any(false));
  CHECK(world.all(true));
  CHECK(world.all(is_last) == (world.size() == 1));
}

TEST_CASE("Each rank gets the same bits of a sum") {
  const Group world;
  struct Sums {
    tg::Array<double> numbers{tg::Shape{1000}};
    TAPEGRAD_FIELDS(numbers)
  } sums;
  tg::Generator generator(world.rank());
  sums.numbers = world.sum(tg::uniform<double>({1000}, -1, 1, generator));
  CHECK_NOTHROW(world.check_equal(sums));
}

TEST_CASE("Arrays of different sizes are refused on every rank") {
  const Group world;
  if (world.size() == 1) return;
  const std::size_t sizes[] = {2, 1, 2, 3};  // two of four ranks have the mean size
  check_refused("sum", "arrays of equal size on all ranks, got one of shape (",
                [&] { world.sum(tg::Array<double>({sizes[world.rank()]}, 1.0)); });
  CHECK(world.sum(1) == static_cast<double>(world.size()));
}

// ---- equality -------------------------------------------------------------------------------------------------------

TEST_CASE("A bit that differs on one rank is found, with the field's name and the rank") {
  const Group world;
  if (world.size() == 1) return;
  for (const std::size_t rank : {std::size_t{1}, world.size() - 1}) {
    Run run(1);
    CHECK(message_of(world, run).empty());
    const bool is_chosen = world.rank() == rank;
    const auto differs = [&](const std::string& name) { return difference(name, rank); };
    if (is_chosen) run.step += 1;
    CHECK(message_of(world, run) == differs("step"));
    if (is_chosen) run.note = "Of rank 0";
    CHECK(message_of(world, run) == differs("note"));
    if (is_chosen) run.given.reset();
    CHECK(message_of(world, run) == differs("given"));
    if (is_chosen) {
      double& number = run.net.twice.bias.mutable_value()(7);
      number = std::bit_cast<double>(std::bit_cast<std::uint64_t>(number) ^ 1);
    }
    CHECK(message_of(world, run) == differs("net.twice.bias"));
  }
}

TEST_CASE("A difference on rank 0 is reported on the other ranks, with the first field of several") {
  const Group world;
  if (world.size() == 1) return;
  Run run(1);
  if (world.rank() == 0) run.step = 7;
  CHECK(message_of(world, run) == difference("step", 1));
  if (world.rank() + 1 == world.size()) run.phase = "y";
  CHECK(message_of(world, run) == difference("phase", world.size() - 1));
}

TEST_CASE("Zeros of different sign differ, and a NaN equals itself") {
  const Group world;
  struct Number {
    double x;
    TAPEGRAD_FIELDS(x)
  } number{std::numeric_limits<double>::quiet_NaN()};
  CHECK(message_of(world, number).empty());
  number.x = world.rank() == 1 ? -0.0 : 0.0;
  CHECK(message_of(world, number).empty() == (world.size() == 1));
}

TEST_CASE("Models with different fields are reported on all ranks") {
  const Group world;
  if (world.size() == 1) return;
  const std::size_t counts[] = {2, 1, 2, 3};
  const std::vector<tg::Linear<float>> layers(counts[world.rank()], tg::Linear<float>(1, 1));
  CHECK(message_of(world, layers) == "[check_equal] expected the same number of fields on all ranks, got " +
                                         std::to_string(2 * counts[world.rank()]) + " on rank " +
                                         std::to_string(world.rank()) + " and another number on another rank");
  CHECK(world.sum(1) == static_cast<double>(world.size()));
}

TEST_CASE("The same numbers in other shapes or under other names are different") {
  const Group world;
  if (world.size() == 1) return;
  struct Given {
    std::optional<tg::Array<float>> numbers;
    std::map<std::string, int> named;
    TAPEGRAD_FIELDS(numbers, named)
  };
  const bool is_first = world.rank() == 0;
  const Given shaped{tg::Array<float>(is_first ? tg::Shape{2, 3} : tg::Shape{3, 2}, 1.0F), {}};
  CHECK(message_of(world, shaped) == difference("numbers", 1));
  const Given named{std::nullopt, {{is_first ? "a" : "b", 1}}};
  CHECK(message_of(world, named) == difference(is_first ? "named.a" : "named.b", 1));
}

TEST_CASE("Changing any byte or the length changes the checksum") {
  std::set<std::uint64_t> sums;
  for (std::size_t length = 0; length <= 40; ++length) {
    CAPTURE(length);
    std::string bytes(length, '\0');
    const auto checksum = [&] { return tg::mpi::detail::checksum(bytes.data(), length); };
    const std::uint64_t before = checksum();
    CHECK(sums.insert(before).second);
    for (char& byte : bytes)
      for (int bit = 0; bit < 8; ++bit) {
        const char kept = byte;
        byte = static_cast<char>(byte ^ (1 << bit));
        CHECK(checksum() != before);
        byte = kept;
      }
    CHECK(checksum() == before);
  }
  CHECK(tg::mpi::detail::checksum("abcdefghijklmnop", 16) != tg::mpi::detail::checksum("ijklmnopabcdefgh", 16));
}

// ---- random numbers -------------------------------------------------------------------------------------------------

TEST_CASE("With a forked generator rank 0 draws as before, and the others draw different numbers, repeatedly") {
  const Group world;
  tg::Generator generator(5);
  generator.next_key();
  tg::Generator fork = world.fork_generator(generator);
  tg::Generator again = world.fork_generator(generator), other_count = generator;
  if (world.rank() == 0) CHECK(fork == generator);
  CHECK(fork == again);
  std::set<double> draws;
  for (int i = 0; i < 3; ++i)
    for (const double draw : of_all(world, tg::random_uniform(fork.next_key(), 0))) draws.insert(draw);
  CHECK(draws.size() == 3 * world.size());

  other_count.next_key();  // advances the state
  CHECK((world.rank() == 0 || !(world.fork_generator(other_count) == again)));
  CHECK_FALSE(world.fork_generator(tg::Generator(6)) == again);
}
