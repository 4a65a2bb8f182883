// Prints a Markdown table of training steps: tapegrad's time and peak memory next to libtorch's best, the ratio, and
// the step's time relative to its matrix products. The programs run in turn, in rounds over all workloads, libtorch
// once for each setting of its threads and of OpenBLAS's. With --workloads, only prints the step programs' arguments.
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
    {"GPT of characters", 12, 64, 128, 4, 65, 0, 4},
    {"GPT-2's size", 4, 64, 768, 12, 50257, 0, 12},
};

// Libtorch's settings: OMP_NUM_THREADS and OPENBLAS_NUM_THREADS.
constexpr std::array<std::array<int, 2>, 4> kThreads{{{1, 1}, {1, 2}, {2, 1}, {2, 2}}};

struct Programs {
  std::string ours, products, theirs;  // theirs: empty without libtorch
};

// The measurements of a workload, by round.
struct Row {
  Workload workload;
  std::vector<Measured> ours, products;
  std::array<std::vector<Measured>, kThreads.size()> theirs;
};

void measure(Row& row, const Programs& programs) {
  const std::string arguments = row.workload.arguments();
  row.ours.push_back(benchmark::run_command(programs.ours + arguments));
  row.products.push_back(benchmark::run_command(programs.products + arguments));
  for (std::size_t s = 0; s < kThreads.size() && !programs.theirs.empty(); ++s)
    row.theirs[s].push_back(benchmark::run_command("OMP_NUM_THREADS=" + std::to_string(kThreads[s][0]) +
                                                   " OPENBLAS_NUM_THREADS=" + std::to_string(kThreads[s][1]) + ' ' +
                                                   programs.theirs + arguments));
}

// The median of the rounds' ratios, since other load slows both programs down.
double ratio(const std::vector<Measured>& above, const std::vector<Measured>& below) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < above.size(); ++i) ratios.push_back(above[i].ms / below[i].ms);
  return median(ratios);
}

// Its name and size.
std::string described(const Workload& w) {
  std::string text = w.name + " (";
  for (const std::size_t number : {w.batch, w.length, w.width, w.heads}) text += std::to_string(number) + ", ";
  text += w.layers > 0 ? std::to_string(w.layers) : "";
  return text.substr(0, text.find_last_not_of(", ") + 1) + ')';
}

void print(const Row& row) {
  const Measured ours = median(row.ours);
  std::printf("| %s | %.3g ms | %.2f | %.0f MiB |", described(row.workload).c_str(), ours.ms,
              ratio(row.ours, row.products), ours.peak_mb);
  if (!row.theirs[0].empty()) {
    std::size_t best = 0;
    for (std::size_t s = 0; s < kThreads.size(); ++s)
      if (median(row.theirs[s]).ms < median(row.theirs[best]).ms) best = s;
    const Measured theirs = median(row.theirs[best]);
    std::printf(" %.3g ms (%d, %d) | %.0f MiB | %.3gx |", theirs.ms, kThreads[best][0], kThreads[best][1],
                theirs.peak_mb, ratio(row.theirs[best], row.ours));
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2 && argv[1] == std::string("--workloads")) {
    for (const Workload& w : kWorkloads) std::printf("%s  %s\n", w.arguments().c_str() + 1, described(w).c_str());
    return 0;
  }
  if (argc < 3 || argc > 5)
    throw std::runtime_error("usage: training_steps STEP_TAPEGRAD STEP_PRODUCTS [STEP_LIBTORCH [ROUNDS]]");
  const Programs programs{argv[1], argv[2], argc > 3 ? argv[3] : ""};
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  if (rounds < 1) throw std::runtime_error("expected at least 1 round, got " + std::string(argv[4]));

  std::vector<Row> rows;
  for (const Workload& workload : kWorkloads) rows.push_back({workload, {}, {}, {}});
  for (int round = 1; round <= rounds; ++round)
    for (Row& row : rows) {
      std::fprintf(stderr, "round %d of %d: %s\n", round, rounds, row.workload.name.c_str());
      measure(row, programs);
    }

  const bool compares = !programs.theirs.empty();
  std::printf("| workload (batch, length, width, heads, layers) | tapegrad | of its products | memory |%s\n",
              compares ? " libtorch (threads) | memory | faster |" : "");
  std::printf("|---|--:|--:|--:|%s\n", compares ? "--:|--:|--:|" : "");
  for (const Row& row : rows) print(row);
} catch (const std::exception& error) {
  std::fprintf(stderr, "training_steps: %s\n", error.what());
  return 1;
}
