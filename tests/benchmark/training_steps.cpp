// Prints a Markdown table of training steps: tapegrad's time and peak memory beside libtorch's best, the ratio, and how
// much of the step its matrix products alone would take. The programs are run in turn, several rounds, libtorch once
// for each setting of its threads and of OpenBLAS's.
#include <array>
#include <cstdlib>

#include "workloads.hpp"

namespace {

using benchmark::Measured;
using benchmark::median;
using benchmark::Workload;

const Workload kWorkloads[] = {
    {"tiny", 1, 4, 8, 2, 26, 0},
    {"small", 8, 16, 32, 4, 26, 0},
    {"mid", 16, 32, 64, 4, 26, 0},
    {"long", 1, 2048, 256, 4, 64, 0},
    {"classifier", 32, 100, 512, 1, 26, 3},
    {"language model", 32, 100, 512, 1, 26, 0},
    {"language model", 32, 100, 512, 8, 26, 0},
};

// Libtorch's settings: OMP_NUM_THREADS and OPENBLAS_NUM_THREADS.
constexpr std::array<std::array<int, 2>, 4> kThreads{{{1, 1}, {1, 2}, {2, 1}, {2, 2}}};

struct Programs {
  std::string ours, products, theirs;  // theirs is empty without libtorch
};

void print_row(const Workload& w, const Programs& programs, int rounds) {
  const std::string arguments = w.arguments();
  std::vector<Measured> ours, products;
  std::array<std::vector<Measured>, kThreads.size()> theirs;
  for (int round = 0; round < rounds; ++round) {
    ours.push_back(benchmark::run_command(programs.ours + arguments));
    products.push_back(benchmark::run_command(programs.products + arguments));
    for (std::size_t s = 0; s < kThreads.size() && !programs.theirs.empty(); ++s)
      theirs[s].push_back(benchmark::run_command("OMP_NUM_THREADS=" + std::to_string(kThreads[s][0]) +
                                                 " OPENBLAS_NUM_THREADS=" + std::to_string(kThreads[s][1]) + ' ' +
                                                 programs.theirs + arguments));
  }
  const Measured m = median(ours);
  std::printf("| %s (%zu, %zu, %zu, %zu) | %.3g ms | %.2f | %.0f MB |", w.name.c_str(), w.batch, w.length, w.width,
              w.heads, m.ms, m.ms / median(products).ms, m.peak_mb);
  if (!programs.theirs.empty()) {
    std::size_t best = 0;
    std::array<Measured, kThreads.size()> medians;
    for (std::size_t s = 0; s < kThreads.size(); ++s) {
      medians[s] = median(theirs[s]);
      if (medians[s].ms < medians[best].ms) best = s;
    }
    std::printf(" %.3g ms (%d, %d) | %.0f MB | %.3gx |", medians[best].ms, kThreads[best][0], kThreads[best][1],
                medians[best].peak_mb, medians[best].ms / m.ms);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3 || argc > 5)
    throw std::runtime_error("usage: training_steps STEP_TAPEGRAD STEP_PRODUCTS [STEP_LIBTORCH [ROUNDS]]");
  const Programs programs{argv[1], argv[2], argc > 3 ? argv[3] : ""};
  const bool compares = !programs.theirs.empty();
  std::printf("| workload (batch, length, width, heads) | tapegrad | of its products | memory |%s\n",
              compares ? " libtorch (threads) | memory | faster |" : "");
  std::printf("|---|--:|--:|--:|%s\n", compares ? "--:|--:|--:|" : "");
  for (const Workload& workload : kWorkloads) print_row(workload, programs, argc > 4 ? std::atoi(argv[4]) : 5);
} catch (const std::exception& error) {
  std::fprintf(stderr, "training_steps: %s\n", error.what());
  return 1;
}
