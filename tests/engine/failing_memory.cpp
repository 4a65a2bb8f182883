// Out of memory: each allocation of recording, backward, step, save, load and other calls fails once. This is a
// separate program because it replaces operator new.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN

#include <atomic>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "checkpoint_bytes.hpp"
#include "close.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Tensor = tg::Tensor<double>;
using Parameter = tg::Parameter<double>;

namespace {

// Number of this thread's allocations that succeed before one fails; below 0, all succeed.
thread_local long allocations_left = -1;

// Number of allocations by the library's own threads: a failure there would end the program.
thread_local bool is_of_test = false;
std::atomic<long> allocations_of_library{0};

void* allocate(std::size_t size, std::size_t alignment) {
  if (!is_of_test) ++allocations_of_library;
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* const block = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// The program's operator new; the pool uses it as well.
void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

namespace {

// Calls `step` with its n-th allocation failing, counted from 0. True if it threw an exception.
template <class Step> bool fails_at(long n, Step step) {
  allocations_left = n;
  try {
    step();
  } catch (const std::exception&) {  // std::bad_alloc, or a stream's error for it
    allocations_left = -1;
    return true;
  }
  allocations_left = -1;
  return false;
}

// Each attempt runs on a new thread, with an empty pool, so every block is an allocation. Returns the number of
// failures of `attempt(n)` before it succeeds.
template <class Attempt> long attempts_until_success(Attempt attempt) {
  long n = 0;
  bool failed = true;
  for (; failed && n < 10000; ++n)
    std::jthread([&] {
      is_of_test = true;
      failed = attempt(n);
    }).join();
  CHECK_FALSE(failed);
  return n - 1;
}

const std::size_t kLarge = 32768;  // large enough for several threads, too small for the pool to map it

struct Large {
  Parameter a{Array(tg::Shape{kLarge}, 2.0)}, b{Array(tg::Shape{kLarge}, 3.0)};
  TAPEGRAD_FIELDS(a, b)
};

Tensor loss_of(const Large& model) { return tg::sum(model.a * model.b) + tg::sum(tg::tanh(model.a * 0.0)); }

}  // namespace

TEST_CASE("A backward pass that runs out of memory at any point changes no gradient or is complete") {
  const long failed = attempts_until_success([](long n) {
    tg::set_num_threads(2);  // a pool not yet started
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

TEST_CASE("Delivering gradients needs no memory, also if several threads accumulate them") {
  const long failed = attempts_until_success([](long n) {
    Large model;
    model.a.set_grad(Array(tg::Shape{kLarge}, 10.0));
    model.b.set_grad(Array(tg::Shape{kLarge}, 20.0));
    const tg::Tape tape;
    const Tensor y = tg::record("both", Array{0.0}, {model.a, model.b}, [](const Array&, auto& dx) {
      for (std::size_t input : {0, 1}) dx[input] += Array(tg::Shape{kLarge}, 1.0);
    });
    tg::set_num_threads(2);  // a pool first needed for adding up gradients
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

TEST_CASE("A tape that ran out of memory while recording continues as if nothing happened") {
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

TEST_CASE("Loading into a run that runs out of memory at any point changes nothing or is complete") {
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
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "run.safetensors";
  tg::save(trained, path);
  const std::string file = bytes_of(path);
  bool from_disk = false;
  const auto load = [&](long n) {
    Run run;
    const bool failed =
        fails_at(n, [&] { from_disk ? tg::load(run, path) : tg::load(run, std::as_bytes(std::span(file))); });
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
  };
  CHECK(attempts_until_success(load) > 20);
  from_disk = true;
  CHECK(attempts_until_success(load) > 20);
}

TEST_CASE("Reading a file that runs out of memory at any point throws or is complete") {
  const TemporaryFolder folder;
  tg::save(Large(), folder / "file", {{"text", "a text that is longer than what a string holds in itself"}});
  const std::string file = bytes_of(folder / "file");
  const auto bytes = std::as_bytes(std::span(file));
  for (const auto& read :
       std::vector<std::function<std::size_t()>>{[&] { return tg::read_safetensors(folder / "file").size(); },
                                                 [&] { return tg::read_safetensors(bytes).size(); },
                                                 [&] { return 1 + tg::load_metadata(folder / "file").size(); },
                                                 [&] { return 1 + tg::load_metadata(bytes).size(); }}) {
    const long failed = attempts_until_success([&](long n) {
      std::size_t found = 0;
      const bool failed = fails_at(n, [&] { found = read(); });
      CHECK(found == (failed ? 0 : 2));
      return failed;
    });
    CHECK(failed > 5);
  }
}

TEST_CASE("Saving that runs out of memory at any point leaves the old or the new file, and no other") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "file";
  const tg::AttentionMap<float> map{{"a", "b"}, {"c"}, tg::Array<float>(tg::Shape{1, 2, 1}, 0.5f)};
  for (const auto& write : std::vector<std::function<void()>>{
           [&] {
             tg::save(Large(), path, {{"text", "a text that is longer than what a string holds in itself"}});
           },
           [&] { tg::save_npy(map.weights, path); }, [&] { tg::save_csv(map, path); }}) {
    write();
    const std::string whole = bytes_of(path);
    const long failed = attempts_until_success([&](long n) {
      write_bytes(path, "old");
      const bool failed = fails_at(n, write);
      CHECK(bytes_of(path) == (failed ? "old" : whole));
      CHECK(folder.files() == 1);
      return failed;
    });
    CHECK(failed > 5);
  }
}

TEST_CASE("Writing a page that runs out of memory at any point leaves the old or the new file, and no other") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "page.html";
  tg::Tape tape({.profile = true, .keep_values = true});
  tg::Parameter<float> x(tg::Array<float>(tg::Shape{1, 2, 4}, 0.5f));
  tg::Parameter<double> w(Array{1.0, 2.0});
  x.set_name("x"), w.set_name("w");
  tg::sum(tg::MultiHeadAttention<float>(4, 2)(x)).backward();
  tg::sum(w * Array{3.0, 4.0}).backward();
  const std::string text = "a text that is longer than what a string holds in itself <&>";
  tg::Page page({.title = text, .axes = {{"x", {{"batch"}, {text, {"the", text}}, {}}}}});
  page.add(tape, {.label = text, .opened_at = "w", .about = text, .numeric = {{"w", Array{3.0, 4.0}}}});
  page.save(path);
  const std::string whole = bytes_of(path);
  CHECK(whole.ends_with("</html>\n"));
  const long failed = attempts_until_success([&](long n) {
    write_bytes(path, "old");
    const bool failed = fails_at(n, [&] { page.save(path); });
    CHECK(bytes_of(path) == (failed ? "old" : whole));
    CHECK(folder.files() == 1);
    return failed;
  });
  CHECK(failed > 1000);
}

TEST_CASE("A training step that runs out of memory at any point can be repeated, with the same parameters") {
  struct Model {
    tg::Embedding<> embedding{20, 64};
    tg::TransformerBlock<> block{64, 4};
    tg::Linear<> head{64, 20};
    TAPEGRAD_FIELDS(embedding, block, head)
  };
  tg::IntArray ids(tg::Shape{8, 64});
  for (std::size_t i = 0; i < ids.size(); ++i) ids.data()[i] = static_cast<std::int64_t>(7 * i % 20);
  const auto step = [&](Model& model, tg::AdamW<float>& optimizer) {
    optimizer.zero_grad();
    const tg::Tape tape;
    const auto y = model.block(model.embedding(ids), tg::AttentionMask::causal());
    tg::cross_entropy(model.head(y), ids).backward();
    tg::clip_grad_norm(tg::parameters(model), 1.0);
    optimizer.step();
  };
  tg::set_num_threads(2);  // its pool starts in the first step
  const Model begin;
  Model once = begin, twice = begin;
  {
    tg::AdamW<float> optimizer(tg::parameters(once), {.lr = 0.01});
    step(once, optimizer);
  }
  {
    tg::AdamW<float> optimizer(tg::parameters(twice), {.lr = 0.01});
    step(twice, optimizer);
    step(twice, optimizer);
  }
  const auto equal = [](const Model& a, const Model& b) {
    const auto of_a = tg::named_parameters(a), of_b = tg::named_parameters(b);
    return std::ranges::equal(of_a, of_b,
                              [](const auto& x, const auto& y) { return x.second->value() == y.second->value(); });
  };
  const long failed = attempts_until_success([&](long n) {
    Model model = begin;
    tg::AdamW<float> optimizer(tg::parameters(model), {.lr = 0.01});
    allocations_of_library = 0;
    const bool failed = fails_at(n, [&] { step(model, optimizer); });
    CHECK(equal(model, failed ? begin : once));
    if (failed) step(model, optimizer);
    CHECK(equal(model, once));
    step(model, optimizer);
    CHECK(equal(model, twice));
    CHECK(allocations_of_library == 0);
    return failed;
  });
  tg::set_num_threads(std::thread::hardware_concurrency());
  CHECK(failed > 50);
}

// Values shared with copies, and states not yet allocated: the first step allocates memory for all.
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
    tg::set_num_threads(2);  // a pool not yet started
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

TEST_CASE("An optimizer's step that runs out of memory changes neither values nor states") {
  check_failing_steps<tg::SGD<double>>({.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  check_failing_steps<tg::Adam<double>>({.lr = 0.1, .weight_decay = 0.1});
  check_failing_steps<tg::AdamW<double>>({.lr = 0.1});
}
