// Prints every schedule's learning rate, one line per step. docs/schedules.gnuplot plots them:
//   build/release/examples/schedules > schedules.dat && gnuplot docs/schedules.gnuplot
#include <tapegrad/tapegrad.hpp>

#include <iostream>

#include "common/program.hpp"

namespace tg = tapegrad;

int print_schedules() {
  constexpr std::size_t kSteps = 100;
  const struct {
    const char* name;
    tg::Schedule rate;
  } schedules[] = {
      {"constant", tg::constant(1e-2)},
      {"step_decay", tg::step_decay({.peak = 1e-2, .factor = 0.5, .every = 25})},
      {"linear_decay", tg::linear_decay({.peak = 1e-2, .floor = 1e-3, .steps = kSteps})},
      {"cosine_decay", tg::cosine_decay({.peak = 1e-2, .floor = 1e-3, .steps = kSteps})},
      {"warmup_cosine", tg::warmup_cosine({.peak = 1e-2, .floor = 1e-3, .warmup = 10, .steps = kSteps})},
  };
  std::cout << "step";
  for (const auto& schedule : schedules) std::cout << ' ' << schedule.name;
  for (std::size_t step = 0; step <= kSteps + 10; ++step) {
    std::cout << '\n' << step;
    for (const auto& schedule : schedules) std::cout << ' ' << schedule.rate(step);
  }
  std::cout << '\n';
  return 0;
}

int main(int argc, char** argv) {
  CLI::App app("Prints every schedule's learning rate at each step, one line per step.", "schedules");
  return examples::run_program(app, argc, argv, print_schedules);
}
