// Prints how a training step grows with the batch, the width and the length, and that of two GPTs with their layers.
// Each is a block with a line per size. growth.gnuplot draws them:
//   growth STEP_TAPEGRAD [STEP_LIBTORCH] > growth.dat && gnuplot growth.gnuplot
#include "workloads.hpp"

namespace {

using benchmark::Measured;
using benchmark::Workload;

struct Programs {
  std::string ours, theirs;
};

// The best of three, so that a curve does not show other load at one of its points.
Measured measure(const std::string& program, Workload w, std::size_t threads) {
  if (program.empty()) return {};
  w.threads = threads;
  Measured best = benchmark::run_command(program + w.arguments());
  for (int round = 1; round < 3; ++round) {
    const Measured m = benchmark::run_command(program + w.arguments());
    if (m.ms < best.ms) best = m;
  }
  return best;
}

void print_block(const char* title, const Programs& programs, std::size_t Workload::*size, std::size_t first,
                 std::size_t last, Workload w) {
  std::printf("# %s: size, GFLOP in products, ms on one thread, ms on all, libtorch's ms, MiB, libtorch's MiB\n",
              title);
  for (w.*size = first; w.*size <= last; w.*size *= 2) {
    const Measured one = measure(programs.ours, w, 1), all = measure(programs.ours, w, 0),
                   theirs = measure(programs.theirs, w, 0);
    std::printf("%zu %g %g %g %g %g %g\n", w.*size, w.product_flops(7) / 1e9, one.ms, all.ms, theirs.ms, all.peak_mb,
                theirs.peak_mb);
    std::fflush(stdout);
  }
  std::printf("\n\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) throw std::runtime_error("usage: growth STEP_TAPEGRAD [STEP_LIBTORCH]");
  const Programs programs{argv[1], argc > 2 ? argv[2] : ""};
  print_block("batch", programs, &Workload::batch, 1, 64, {"", 0, 64, 128, 4, 26, 0});
  print_block("width", programs, &Workload::width, 32, 1024, {"", 16, 64, 0, 4, 26, 0});
  print_block("length", programs, &Workload::length, 128, 4096, {"", 1, 0, 256, 4, 64, 0});
  print_block("layers, GPT of characters", programs, &Workload::layers, 1, 16, {"", 12, 64, 128, 4, 65, 0});
  print_block("layers, GPT-2's width", programs, &Workload::layers, 3, 12, {"", 4, 64, 768, 12, 50257, 0});
} catch (const std::exception& error) {
  std::fprintf(stderr, "growth: %s\n", error.what());
  return 1;
}
