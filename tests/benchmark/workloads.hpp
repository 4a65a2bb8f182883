/// What both libraries are timed on: one training step of a small attention model, from clearing the gradients to the
/// optimizer's step, on random tokens.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace benchmark {

struct Workload {
  const char* name;
  std::size_t batch, length, width, heads, tokens;
  std::size_t classes;  ///< of a classifier; 0: a causal language model, which predicts tokens
};

inline constexpr Workload kWorkloads[] = {
    {"tiny", 1, 4, 8, 2, 26, 0},
    {"small", 8, 16, 32, 4, 26, 0},
    {"mid", 16, 32, 64, 4, 26, 0},
    {"long", 1, 2048, 256, 4, 64, 0},
    {"classifier", 32, 100, 512, 1, 26, 3},
    {"language model", 32, 100, 512, 1, 26, 0},
    {"language model", 32, 100, 512, 8, 26, 0},
};

inline std::vector<std::int64_t> random_ids(std::size_t count, std::size_t below) {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> ids(count);
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % below);
  return ids;
}

/// The median time of a step in milliseconds, over about a second after a warm-up.
template <class Step> double median_ms(Step step) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  for (int i = 0; i < 3; ++i) step();
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 5 || (since(start) < 1000 && times.size() < 20000)) {
    const auto begin = Clock::now();
    step();
    times.push_back(since(begin));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// This process's memory at its peak, in MB.
inline double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

/// Runs the workload whose number is the program's argument and prints its median time and the process's peak memory.
template <class Run> int run_one(int argc, char** argv, Run run) {
  const std::size_t number = argc == 2 ? std::stoul(argv[1]) : std::size(kWorkloads);
  if (number >= std::size(kWorkloads)) {
    std::fprintf(stderr, "usage: %s NUMBER, of a workload from 0 to %zu\n", argv[0], std::size(kWorkloads) - 1);
    return 1;
  }
  const double ms = run(kWorkloads[number]);
  std::printf("%.6f %.1f\n", ms, peak_mb());
  return 0;
}

}  // namespace benchmark
