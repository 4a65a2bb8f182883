// Prints a Markdown table of training steps: tapegrad's time and peak memory beside libtorch's best, and the ratio. The
// two programs are run in turn, several rounds, libtorch once for each setting of its threads and of OpenBLAS's.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "workloads.hpp"

namespace {

struct Measured {
  double ms = 0, peak_mb = 0;
};

Measured run(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  Measured m;
  const bool read = pipe != nullptr && std::fscanf(pipe, "%lf %lf", &m.ms, &m.peak_mb) == 2;
  if (pipe == nullptr || ::pclose(pipe) != 0 || !read) throw std::runtime_error("expected a time from: " + command);
  return m;
}

Measured median(std::vector<Measured> rounds) {
  std::sort(rounds.begin(), rounds.end(), [](const Measured& a, const Measured& b) { return a.ms < b.ms; });
  return rounds[rounds.size() / 2];
}

// Libtorch's settings: OMP_NUM_THREADS and OPENBLAS_NUM_THREADS.
constexpr std::array<std::array<int, 2>, 4> kThreads{{{1, 1}, {1, 2}, {2, 1}, {2, 2}}};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4) throw std::runtime_error("usage: training_steps STEP_TAPEGRAD [STEP_LIBTORCH [ROUNDS]]");
  const std::string ours = argv[1], theirs = argc > 2 ? argv[2] : "";
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 3;

  std::printf("| workload (batch, length, width, heads) | tapegrad | libtorch, best setting | ratio | peak memory |\n");
  std::printf("|---|--:|--:|--:|--:|\n");
  for (std::size_t i = 0; i < std::size(benchmark::kWorkloads); ++i) {
    const benchmark::Workload& w = benchmark::kWorkloads[i];
    const std::string number = ' ' + std::to_string(i);
    std::vector<Measured> mine;
    std::array<std::vector<Measured>, kThreads.size()> others;
    for (int round = 0; round < rounds; ++round) {
      mine.push_back(run(ours + number));
      for (std::size_t s = 0; s < kThreads.size() && !theirs.empty(); ++s)
        others[s].push_back(run("OMP_NUM_THREADS=" + std::to_string(kThreads[s][0]) +
                                " OPENBLAS_NUM_THREADS=" + std::to_string(kThreads[s][1]) + ' ' + theirs + number));
    }
    const Measured m = median(mine);
    std::printf("| %s (%zu, %zu, %zu, %zu) | %.3g ms |", w.name, w.batch, w.length, w.width, w.heads, m.ms);
    if (theirs.empty()) {
      std::printf(" | | %.0f MB |\n", m.peak_mb);
    } else {
      std::size_t best = 0;
      std::array<Measured, kThreads.size()> medians;
      for (std::size_t s = 0; s < kThreads.size(); ++s) {
        medians[s] = median(others[s]);
        if (medians[s].ms < medians[best].ms) best = s;
      }
      std::printf(" %.3g ms (%d, %d) | %.1f | %.0f MB, %.0f MB |\n", medians[best].ms, kThreads[best][0],
                  kThreads[best][1], medians[best].ms / m.ms, m.peak_mb, medians[best].peak_mb);
    }
    std::fflush(stdout);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "training_steps: %s\n", error.what());
  return 1;
}
