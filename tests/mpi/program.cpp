// Runs the command given as its first argument on each rank, for tests that launch it in many ways: mpi_program
// <command> [file].
#include <tapegrad/mpi.hpp>
#include <tapegrad/tapegrad.hpp>

#include <mpi.h>
#include <xtensor/xmath.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace tg = tapegrad;
using tg::mpi::Group;

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

struct Net {
  tg::Embedding<double> embedding{12, 8};
  tg::Linear<double> hidden{8, 8}, head{8, 3};
  tg::Dropout dropout{0.2};
  TAPEGRAD_FIELDS(embedding, hidden, dropout, head)

  tg::Tensor<double> operator()(const tg::IntArray& ids) const {
    return head(dropout(tg::tanh(hidden(tg::mean(embedding(ids), {1})))));
  }
};

/// Prints a checksum of the model.
void print_bits(const Group& world, const auto& model) {
  world.check_equal(model);
  const auto bytes = tg::save_bytes(model);
  if (world.rank() == 0) std::cout << tg::mpi::detail::checksum(bytes.data(), bytes.size()) << std::endl;
}

// Takes twenty steps, with different examples and dropout on each rank.
void train(const Group& world) {
  tg::manual_seed(3);
  Net net;
  tg::default_generator() = world.fork_generator(tg::default_generator());
  tg::AdamW<double> optimizer(tg::parameters(net));
  tg::mpi::GradientAverage<double> average(world, tg::parameters(net), 512);
  for (int step = 0; step < 20; ++step) {
    const tg::IntArray ids = xt::floor(tg::uniform<double>({4 + world.rank(), 5}, 0, 12));
    const tg::IntArray labels = xt::floor(tg::uniform<double>({4 + world.rank()}, 0, 3));
    const tg::Tape tape;
    optimizer.zero_grad();
    const auto loss = tg::cross_entropy(net(ids), labels);
    average.begin(static_cast<double>(labels.size()));
    loss.backward();
    average.finish();
    optimizer.step();
  }
  print_bits(world, net);
}

/// A run with a sharded optimizer and the same gradients on any number of ranks.
struct DividedRun {
  std::size_t step = 0;
  Net net;
  tg::AdamW<double> optimizer{tg::parameters(net)};
  TAPEGRAD_FIELDS(step, net, optimizer)

  void train(const Group& world, std::size_t until) {
    tg::mpi::Sharded sharded(world, optimizer);
    for (; step < until; ++step) {
      tg::Generator generator(step);
      for (const auto& parameter : tg::parameters(net))
        parameter->set_grad(tg::normal<double>(parameter->shape(), 0, 1, generator));
      sharded.step();
    }
    sharded.gather();
  }
};

void save_divided(const Group& world, const std::string& file) {
  tg::manual_seed(4);
  DividedRun run;
  run.train(world, 5);
  if (world.rank() == 0) tg::save(run, file);
}

// Starts a new run without a file.
void resume_divided(const Group& world, const std::string& file) {
  tg::manual_seed(file.empty() ? 4 : 5);
  DividedRun run;
  if (!file.empty()) tg::load(run, file);
  run.train(world, 10);
  world.broadcast(run);
  print_bits(world, run);
}

// All ranks leave passes early, before the last rank has begun their sums, and then continue.
void abandon(const Group& world) {
  Net net;
  world.broadcast(net);
  const tg::Parameters<double> parameters = tg::parameters(net);
  for (const bool before_sweep : {true, false}) {
    tg::mpi::GradientAverage<double> average(world, parameters, 1);
    if (world.rank() + 1 == world.size()) sleep(0.3);
    average.begin();
    if (before_sweep) continue;
    const tg::Tape tape;
    tg::HookHandle hook = net.hidden.weight.register_hook([](auto&) { throw std::runtime_error("the sweep fails"); });
    try {
      tg::sum(net(tg::IntArray{{1, 2}})).backward();
    } catch (const std::runtime_error&) {
    }
    hook.remove();
  }
  // Reuses freed memory of any size.
  std::vector<tg::Array<double>> others;
  for (std::size_t size = 1; size < 200; ++size) others.emplace_back(tg::Shape{size}, 7.0);
  tg::mpi::GradientAverage<double> average(world, parameters, 1);
  for (int i = 0; i < 10; ++i) {
    for (const auto& parameter : parameters) parameter->set_grad(tg::Array<double>(parameter->shape(), 1.0));
    average.begin();
    average.finish();
    for (const auto& parameter : parameters)
      for (const double number : parameter->grad())
        if (number != 1.0) throw std::runtime_error("sums are mixed up");
  }
  for (const auto& array : others)
    for (const double number : array)
      if (number != 7.0) throw std::runtime_error("a sum was written to memory that is somebody else's");
  if (world.rank() == 0) std::cout << "goes on" << std::endl;
}

void run(const std::string& what, const std::string& file, const Group& world) {
  const bool is_last = world.rank() + 1 == world.size();
  const std::map<std::string, std::function<void()>> all{
      {"nothing", [] {}},
      {"with_timeout", [] {}},
      {"last_fails", [&] { world.sum(1); }},
      {"train", [&] { train(world); }},
      {"save", [&] { save_divided(world, file); }},
      {"resume", [&] { resume_divided(world, file); }},
      {"abandon", [&] { abandon(world); }},
      {"threads", [&] { std::cout << "threads: " + std::to_string(tg::num_threads()) + "\n"
                                  << std::flush; }},
      {"two_sessions", [&] { const tg::mpi::Session second(0, nullptr); }},
      {"last_throws",
       [&] {
         if (is_last) throw std::runtime_error("the last rank has no data");
         world.sum(1);
       }},
      {"last_is_killed",
       [&] {
         if (is_last) std::raise(SIGKILL);
         world.sum(1);
       }},
      {"last_exits",
       [&] {
         if (is_last) std::exit(0);
         world.sum(1);
       }},
      {"last_leaves",
       [&] {
         if (is_last) return sleep(1);  // after the others' timeout
         world.sum(1);
       }},
      {"last_does_something_else",
       [&] {
         if (is_last) sleep(60);
         world.sum(1);
       }},
      {"last_is_late",
       [&] {
         if (is_last) sleep(3);
         world.sum(1);
       }},
      {"last_leaks",
       [&] {
         if (is_last) std::cout << static_cast<void*>(new double[100]) << std::endl;
       }},
  };
  all.at(what)();
}

}  // namespace

// Replaces MPI's function to report the call: mpirun also ends the other ranks if one exits; other launchers may not.
extern "C" int MPI_Abort(MPI_Comm ranks, int status) {
  std::cerr << "MPI_Abort\n" << std::flush;
  return PMPI_Abort(ranks, status);
}

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "nothing", file = argc > 2 ? argv[2] : "";
  if (what == "no_session") {
    const Group world;
    std::cout << world.size() << std::endl;
    return 0;
  }
  tg::mpi::SessionOptions options;
  if (what == "with_timeout") options.timeout = std::stod(file);
  const tg::mpi::Session session(argc, argv, options);
  const Group world;
  if (what == "all_fail" || (what == "last_fails" && world.rank() + 1 == world.size())) {
    session.fail("mpi_program", "there is no such file");
    return 1;
  }
  run(what, file, world);
} catch (const std::exception& error) {
  std::cerr << "mpi_program: " + std::string(error.what()) + "\n" << std::flush;
  return 1;
}
