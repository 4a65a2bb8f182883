// Runs the command given as its first argument on each rank, for tests that launch it in many ways: mpi_program
// <command> [seconds].
#include <tapegrad/mpi.hpp>
#include <tapegrad/tapegrad.hpp>

#include <mpi.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
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
  TAPEGRAD_FIELDS(embedding, hidden, head)

  tg::Tensor<double> operator()(const tg::IntArray& ids) const {
    return head(tg::tanh(hidden(tg::mean(embedding(ids), {1}))));
  }
};

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

void run(const std::string& what, const Group& world) {
  const bool is_last = world.rank() + 1 == world.size();
  const std::map<std::string, std::function<void()>> all{
      {"nothing", [] {}},
      {"with_timeout", [] {}},
      {"last_fails", [&] { world.sum(1); }},
      {"abandon", [&] { abandon(world); }},
      {"threads", [&] { std::cout << "threads: " + std::to_string(tg::num_threads()) + "\n"
                                  << std::flush; }},
      {"two_sessions", [&] { const tg::mpi::Session second(0, nullptr, {.timeout = -1.0}); }},
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
  const std::string what = argc > 1 ? argv[1] : "nothing";
  if (what == "no_session") {
    const Group world;
    std::cout << world.size() << std::endl;
    return 0;
  }
  tg::mpi::SessionOptions options;
  if (what == "with_timeout") options.timeout = std::stod(argv[2]);
  const tg::mpi::Session session(argc, argv, options);
  const Group world;
  if (what == "all_fail" || (what == "last_fails" && world.rank() + 1 == world.size())) {
    session.fail("mpi_program", "there is no such file");
    return 1;
  }
  run(what, world);
} catch (const std::exception& error) {
  std::cerr << "mpi_program: " + std::string(error.what()) + "\n" << std::flush;
  return 1;
}
