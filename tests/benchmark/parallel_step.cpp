// Times a GPT's training step by several processes with a common batch. Without mpirun it is one process:
//
//     mpirun -n 2 --bind-to none build/release/tests/benchmark/parallel_step 12 64 128 4 65 0 4 1 10
//
// The arguments are those of the other step programs: batch, length, width, heads, tokens, 0, layers, threads of a
// rank, seconds. Steps take turns without averaging gradients, with averaging after the backward pass, and with
// averaging during it. Rank 0 prints the medians in milliseconds, and the bytes of the gradients.
#include <tapegrad/mpi.hpp>
#include <tapegrad/tapegrad.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gpt.hpp"
#include "workloads.hpp"

namespace tg = tapegrad;
using Clock = std::chrono::steady_clock;

namespace {

enum Way { alone, behind, within, kWays };

void time_ways(const benchmark::Workload& w, const tg::mpi::Group& world) {
  if (w.threads > 0) tg::set_num_threads(w.threads);
  const std::size_t rows = w.batch / world.size();
  const tg::IntArray ids = benchmark::array_of(benchmark::random_ids(rows * w.length, w.tokens), {rows, w.length});
  benchmark::Gpt model(w);
  const auto parameters = tg::parameters(model);
  world.broadcast(model);
  tg::AdamW<float> optimizer(parameters, {.lr = 1e-3});
  tg::mpi::GradientAverage average(world, parameters);

  const auto step = [&](Way way) {
    tg::Tape tape;
    optimizer.zero_grad();
    const tg::Tensor<float> loss = tg::cross_entropy(model(ids), ids);
    if (way == within) average.begin();
    loss.backward();
    if (way == within) average.finish();
    if (way == behind) world.average_gradients(parameters);
    tg::clip_grad_norm(parameters, 1.0);
    optimizer.step();
  };
  std::array<std::vector<double>, kWays> times;
  const auto start = Clock::now();
  for (int round = 0;; ++round) {
    const std::chrono::duration<double> since = Clock::now() - start;
    if (world.any(round > 6 && since.count() > w.seconds)) break;
    for (const Way way : {alone, behind, within}) {
      world.sum(0);  // a common start
      const double ms = benchmark::milliseconds([&] { step(way); });
      if (round > 1) times[way].push_back(ms);
    }
  }
  if (world.rank() == 0)
    std::printf("%.3f %.3f %.3f %zu\n", benchmark::median(times[alone]), benchmark::median(times[behind]),
                benchmark::median(times[within]), tg::count_parameters(model) * sizeof(float));
}

}  // namespace

int main(int argc, char** argv) {
  const tg::mpi::Session session(argc, argv);
  return benchmark::run_with(argc, argv, [](const benchmark::Workload& w) { time_ways(w, tg::mpi::Group()); });
}
