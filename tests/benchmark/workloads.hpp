/// The common workloads of both libraries: a training step of an attention model on random tokens, from clearing the
/// gradients to the optimizer's step.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace benchmark {

struct Workload {
  std::string name;
  std::size_t batch, length, width, heads, tokens;
  std::size_t classes;      ///< of a classifier; 0: a causal language model
  std::size_t layers = 0;   ///< Transformer blocks of a GPT; 0: a single attention layer
  std::size_t threads = 0;  ///< tapegrad's; 0: one per processor
  double seconds = 1;       ///< duration of the measurement

  /// The rows of a linear layer's products.
  std::size_t rows() const { return batch * length; }

  /// The multiplications and additions in the step's matrix products: of the linear layers and the head, forward and
  /// for both gradients, and of attention, halved by a causal mask. Attention has two products forward and four
  /// backward, and one more if the scores are computed again.
  double product_flops(double attention_products = 6) const {
    const double r = double(rows()), w = double(width), t = double(length);
    const double head = classes > 0 ? double(batch * classes) : r * double(tokens);
    const double seen = classes > 0 ? t : (t + 1) / 2;
    const double squares = layers > 0 ? 12 : 4;  // w x w matrices: 4 projections, 8 in a block's feed-forward
    const double layer = squares * 3 * r * w * w + attention_products * r * seen * w;
    return 2 * (double(layers > 0 ? layers : 1) * layer + 3 * head * w);
  }

  /// The arguments of the step programs.
  std::string arguments() const {
    std::string text;
    for (const std::size_t number : {batch, length, width, heads, tokens, classes, layers, threads})
      text += ' ' + std::to_string(number);
    return text;
  }
};

inline std::vector<std::int64_t> random_ids(std::size_t count, std::size_t below) {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> ids(count);
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % below);
  return ids;
}

/// The duration of f().
template <class F> double milliseconds(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// The middle value; of an even number, the upper one of both.
inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// The median duration of so many calls.
template <class F> double median_milliseconds(std::size_t calls, F f) {
  std::vector<double> times;
  for (std::size_t i = 0; i < calls; ++i) times.push_back(milliseconds(f));
  return median(times);
}

/// The time of a step, in milliseconds.
struct Times {
  double median, mean;
  double processors;  ///< the mean processor time of all threads together
};

/// Measures for about so many seconds, after a warm-up. The median is of the first 20,000 steps.
template <class Step> Times time_steps(double seconds, Step step) {
  for (int i = 0; i < 3; ++i) step();
  std::vector<double> times;
  double sum = 0, steps = 0;
  const std::clock_t start = std::clock();
  for (; steps < 5 || sum < 1000 * seconds; ++steps) {
    const double time = milliseconds(step);
    sum += time;
    if (steps < 20000) times.push_back(time);
  }
  return {median(times), sum / steps, 1000 * double(std::clock() - start) / CLOCKS_PER_SEC / steps};
}

/// This process's peak memory, in MiB.
inline double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

/// Runs the workload given by the program's arguments.
template <class Run> int run_with(int argc, char** argv, Run run) {
  if (argc != 9 && argc != 10) {
    std::fprintf(stderr, "usage: %s BATCH LENGTH WIDTH HEADS TOKENS CLASSES LAYERS THREADS [SECONDS]\n", argv[0]);
    return 1;
  }
  Workload workload;
  char** argument = argv + 1;
  for (std::size_t Workload::*number : {&Workload::batch, &Workload::length, &Workload::width, &Workload::heads,
                                        &Workload::tokens, &Workload::classes, &Workload::layers, &Workload::threads})
    workload.*number = std::stoul(*argument++);
  if (argc == 10) workload.seconds = std::stod(*argument);
  run(workload);
  return 0;
}

/// Also prints its median time, the process's peak memory, its mean time, and the processor time.
template <class Run> int run_one(int argc, char** argv, Run run) {
  return run_with(argc, argv, [&](const Workload& workload) {
    const Times times = run(workload);
    std::printf("%.6f %.1f %.6f %.6f\n", times.median, peak_mb(), times.mean, times.processors);
  });
}

/// The output of a step program.
struct Measured {
  double ms = 0, peak_mb = 0;
};

/// Runs a step program. Throws std::runtime_error if it prints no time.
inline Measured run_command(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  Measured m;
  const bool read = pipe != nullptr && std::fscanf(pipe, "%lf %lf", &m.ms, &m.peak_mb) == 2;
  if (pipe == nullptr || ::pclose(pipe) != 0 || !read) throw std::runtime_error("expected a time from: " + command);
  return m;
}

/// The one with the median time.
inline Measured median(std::vector<Measured> rounds) {
  std::sort(rounds.begin(), rounds.end(), [](const Measured& a, const Measured& b) { return a.ms < b.ms; });
  return rounds[rounds.size() / 2];
}

}  // namespace benchmark
