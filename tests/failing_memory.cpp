// What happens when memory ends: each allocation of a recording, a sweep and an assignment fails once. A program of its
// own, since it puts its own operator new in place of the library's.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "close.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Tensor = tg::Tensor<double>;
using Parameter = tg::Parameter<double>;

namespace {

// How many allocations of this thread succeed before one fails; below 0, all do.
thread_local long allocations_left = -1;

void* allocate(std::size_t size, std::size_t alignment) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* const block = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// The program's own, through which the pool takes its blocks too.
void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

namespace {

// Calls `step` as often as it takes until none of its allocations fails, each time one later than before.
template <class Step> bool fails_at(long n, Step step) {
  allocations_left = n;
  try {
    step();
  } catch (const std::bad_alloc&) {
    allocations_left = -1;
    return true;
  }
  allocations_left = -1;
  return false;
}

// On a thread of its own, whose pool has no idle memory at first: there every block is an allocation. Gives back how
// often `attempt(n)` failed before it succeeded.
template <class Attempt> long attempts_until_success(Attempt attempt) {
  long n = 0;
  bool failed = true;
  for (; failed && n < 10000; ++n) std::jthread([&] { failed = attempt(n); }).join();
  CHECK_FALSE(failed);
  return n - 1;
}

const std::size_t kLarge = 70000;  // threads share in the work

struct Large {
  Parameter a{Array(tg::Shape{kLarge}, 2.0)}, b{Array(tg::Shape{kLarge}, 3.0)};
  TAPEGRAD_FIELDS(a, b)
};

Tensor loss_of(const Large& model) { return tg::sum(model.a * model.b) + tg::sum(tg::tanh(model.a * 0.0)); }

}  // namespace

TEST_CASE("A sweep whose memory ends anywhere changes no gradient, or is complete") {
  const long failed = attempts_until_success([](long n) {
    tg::set_num_threads(2);  // a pool that is yet to be made
    Large model;
    model.a.set_grad(Array(tg::Shape{kLarge}, 10.0));
    model.b.set_grad(Array(tg::Shape{kLarge}, 20.0));
    model.b.register_hook([big = std::vector<int>(100)](Array&) {});
    const tg::Tape tape;
    Tensor loss = loss_of(model);
    loss.retain_grad();
    const bool failed = fails_at(n, [&] { loss.backward(); });
    CHECK(model.a.grad()(0) == (failed ? 10.0 : 13.0));
    CHECK(model.a.grad()(kLarge - 1) == (failed ? 10.0 : 13.0));
    CHECK(model.b.grad()(0) == (failed ? 20.0 : 22.0));
    CHECK(model.a.sweeps().total == (failed ? 0 : 1));
    CHECK(model.b.sweeps().total == (failed ? 0 : 1));
    CHECK(loss.has_grad() == !failed);
    return failed;
  });
  tg::set_num_threads(std::thread::hardware_concurrency());
  CHECK(failed > 5);
}

TEST_CASE("Handing gradients over needs no memory, also where threads add them up") {
  const long failed = attempts_until_success([](long n) {
    Large model;
    model.a.set_grad(Array(tg::Shape{kLarge}, 10.0));
    model.b.set_grad(Array(tg::Shape{kLarge}, 20.0));
    const tg::Tape tape;
    const Tensor y = tg::record("both", Array{0.0}, {model.a, model.b}, [](const Array&, auto& dx) {
      for (std::size_t input : {0, 1}) dx[input] += Array(tg::Shape{kLarge}, 1.0);
    });
    tg::set_num_threads(2);  // a pool that is first needed when the gradients are added up
    const bool failed = fails_at(n, [&] { y.backward(Array{1.0}); });
    CHECK(model.a.grad()(0) == (failed ? 10.0 : 11.0));
    CHECK(model.b.grad()(0) == (failed ? 20.0 : 21.0));
    CHECK(model.a.sweeps().total == (failed ? 0 : 1));
    CHECK(model.b.sweeps().total == (failed ? 0 : 1));
    return failed;
  });
  tg::set_num_threads(std::thread::hardware_concurrency());
  CHECK(failed > 2);
}

TEST_CASE("A tape on which memory ended while it recorded goes on as if nothing had been tried") {
  for (const bool profile : {false, true}) {
    const long failed = attempts_until_success([&](long n) {
      Parameter a(Array{1.0, 2.0}), b(Array{3.0, 4.0});
      const tg::Tape tape({.profile = profile});
      const auto loss = [&] {
        return tg::sum(tg::record(
            "product", a.value() * b.value(), {a, b},
            [x = a.shared_value(), y = b.shared_value(), big = std::vector<int>(100)](const Array& dy, auto& dx) {
              dx[0] += *y * dy;
              dx[1] += *x * dy;
            }));
      };
      const bool failed = fails_at(n, [&] { loss(); });
      loss().backward();
      check_close(a.grad(), Array{3.0, 4.0}, 0.0);
      check_close(b.grad(), Array{1.0, 2.0}, 0.0);
      return failed;
    });
    CHECK(failed > 5);
  }
}

TEST_CASE("Moving a parameter needs no memory") {
  static_assert(std::is_nothrow_move_constructible_v<Parameter> && std::is_nothrow_move_assignable_v<Parameter>);
  for (const bool held : {true, false}) {
    Parameter to(Array{1.0}), from(Array{2.0});
    to.set_name("a name that is longer than what a string holds in itself");
    const tg::ParameterHandle<Parameter> handle_to(to);
    std::vector<tg::ParameterHandle<Parameter>> handles;
    if (held) handles.push_back(from);
    CHECK_FALSE(fails_at(0, [&] { to = std::move(from); }));
    CHECK(to.value()(0) == 2.0);
  }
}

TEST_CASE("A run into which is loaded when memory ends anywhere changes in nothing, or is complete") {
  struct Run {
    Parameter weight{Array{0.0, 0.0}};
    tg::AdamW<double> optimizer{tg::parameters(weight), {.lr = 0.5}};
    Array mean{0.0, 0.0};
    Tensor constant{Array{0.0}};
    std::optional<Array> order;
    std::vector<double> losses;
    tg::Generator noise{1};
    std::string phase = "a text that is longer than what a string holds in itself";
    std::size_t step = 0;
    Parameter bias{Array{0.0}};
    TAPEGRAD_FIELDS(weight, optimizer, mean, constant, order, losses, noise, phase, step, bias)

    void train_step() {
      weight.set_grad(Array{1.0, 2.0});
      optimizer.step();
      mean = Array{1.0, 2.0};
      constant = Tensor(Array{3.0});
      order = Array{1.0, 2.0, 3.0};
      losses.assign(100, 0.5);
      noise.next_key();
      phase = "another text that is longer than what a string holds in itself";
      step = 7;
      bias.set_value(Array{9.0});
    }
  };
  Run trained;
  trained.train_step();
  const auto path = std::filesystem::temp_directory_path() / "tapegrad_failing_memory.safetensors";
  tg::save(trained, path);
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  const long failed = attempts_until_success([&](long n) {
    Run run;
    // The header is read before: what reads its JSON needs memory to give back memory, and ends the program without.
    tg::detail::CheckpointReader reader(std::as_bytes(std::span(file)), {});
    const bool failed = fails_at(n, [&] { tg::detail::load(run, std::move(reader)); });
    const Run fresh;
    const Run& expected = failed ? fresh : trained;
    CHECK(run.weight.value() == expected.weight.value());
    CHECK(run.optimizer.state().at("0").step == expected.optimizer.state().at("0").step);
    CHECK(run.optimizer.state().at("0").exp_avg.has_value() == !failed);
    CHECK(run.mean == expected.mean);
    CHECK(run.constant.value() == expected.constant.value());
    CHECK(run.order == expected.order);
    CHECK(run.losses == expected.losses);
    CHECK(run.noise == expected.noise);
    CHECK(run.phase == expected.phase);
    CHECK(run.step == expected.step);
    CHECK(run.bias.value() == expected.bias.value());
    return failed;
  });
  CHECK(failed > 20);
}

// Values that copies share and states that are not there yet: the first step takes memory for all of them.
template <class Optimizer> void check_failing_steps(const typename Optimizer::Options& options) {
  const auto train = [](Large& model, Optimizer& optimizer, long fails_at_allocation) {
    model.a.set_grad(Array(tg::Shape{kLarge}, 0.5));
    model.b.set_grad(Array(tg::Shape{kLarge}, -1.0));
    return fails_at(fails_at_allocation, [&] { optimizer.step(); });
  };
  Large expected;
  Optimizer undisturbed(tg::parameters(expected), options);
  for (int step = 0; step < 2; ++step) train(expected, undisturbed, -1);

  const long failed = attempts_until_success([&](long n) {
    tg::set_num_threads(2);  // a pool that is yet to be made
    Large model;
    const Large copy = model;
    Optimizer optimizer(tg::parameters(model), options);
    const bool failed = train(model, optimizer, n);
    if (failed) {
      check_close(model.a.value(), copy.a.value(), 0.0);
      check_close(model.b.value(), copy.b.value(), 0.0);
      train(model, optimizer, -1);
    }
    train(model, optimizer, -1);
    check_close(model.a.value(), expected.a.value(), 0.0);
    check_close(model.b.value(), expected.b.value(), 0.0);
    return failed;
  });
  tg::set_num_threads(std::thread::hardware_concurrency());
  CHECK(failed > 2);
}

TEST_CASE("An optimizer's step whose memory ends changes neither values nor states") {
  check_failing_steps<tg::SGD<double>>({.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  check_failing_steps<tg::Adam<double>>({.lr = 0.1, .weight_decay = 0.1});
  check_failing_steps<tg::AdamW<double>>({.lr = 0.1});
}
