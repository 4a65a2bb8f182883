// Times training steps of a GPT with and without recomputed blocks, in turn, and measures the peak memory of each:
// recompute [ROUNDS]
#include <tapegrad/tapegrad.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gpt.hpp"
#include "workloads.hpp"

namespace tg = tapegrad;
using benchmark::Gpt, benchmark::median, benchmark::milliseconds, benchmark::Workload;

namespace {

const Workload kWorkload{"", 4, 512, 768, 12, 256, 0, 6};

// A model in training.
struct Run {
  Gpt model{kWorkload};
  tg::Parameters<float> parameters = tg::parameters(model);
  tg::AdamW<float> optimizer{parameters, {.lr = 1e-4}};
  tg::IntArray ids = benchmark::array_of(benchmark::random_ids(kWorkload.batch * kWorkload.length, kWorkload.tokens),
                                         {kWorkload.batch, kWorkload.length});

  tg::Tensor<float> logits(bool recomputes) const {
    auto x = model.tokens(ids) + model.positions(xt::arange<std::int64_t>(std::int64_t(kWorkload.length)));
    for (const auto& block : model.blocks) {
      auto apply = [&block](const auto& h) { return block(h, tg::AttentionMask::causal()); };
      x = recomputes ? tg::recompute(std::move(apply), x) : apply(x);
    }
    return tg::linear(model.norm(x), model.tokens.weight);
  }

  // Takes a step. Returns the bytes allocated by the forward pass and still in use after it.
  std::ptrdiff_t step(bool recomputes) {
    optimizer.zero_grad();
    const tg::Tape tape;
    const std::ptrdiff_t before = tg::detail::array_bytes_in_use;
    const auto loss = tg::cross_entropy(logits(recomputes), ids);
    const std::ptrdiff_t kept = tg::detail::array_bytes_in_use - before;
    loss.backward();
    optimizer.step();
    return kept;
  }
};

// The peak memory of a process that only runs f, in MB.
template <class F> double peak_mb(F f) {
  const pid_t child = fork();
  if (child == 0) {
    f();
    std::_Exit(0);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
    throw std::runtime_error("a process failed");
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  const double others = peak_mb([] {
    Run run;
    for (const auto& p : run.parameters) p->set_grad(tg::Array<float>(p->shape(), 0.0F));
    run.optimizer.step();
  });
  double peaks[2];
  for (const bool recomputes : {false, true})
    peaks[recomputes] = peak_mb([&] {
      Run run;
      for (int step = 0; step < 2; ++step) run.step(recomputes);
    });

  Run run;
  double kept[2];
  std::vector<double> times[2], ratios;
  for (int round = 0; round <= rounds; ++round) {
    double ms[2];
    for (const bool recomputes : {false, true})
      ms[recomputes] = milliseconds([&] { kept[recomputes] = static_cast<double>(run.step(recomputes)) / 1e6; });
    if (round == 0) continue;  // the first round touches new memory
    for (const bool recomputes : {false, true}) times[recomputes].push_back(ms[recomputes]);
    ratios.push_back(ms[1] / ms[0]);
  }
  std::printf("(%zu, %zu) tokens, %zu blocks of width %zu, %zu threads, medians of %d rounds\n", kWorkload.batch,
              kWorkload.length, kWorkload.layers, kWorkload.width, tg::num_threads(), rounds);
  for (const bool recomputes : {false, true})
    std::printf("%-16s %7.0f ms a step  %5.0f MB on the tape  %5.0f MB at most, without weights, gradients, moments\n",
                recomputes ? "with recompute" : "without", median(times[recomputes]), kept[recomputes],
                peaks[recomputes] - others);
  std::printf("with recompute   %.3f of the time, the median of the rounds' ratios, %.3f of the memory at most\n",
              median(ratios), (peaks[1] - others) / (peaks[0] - others));
} catch (const std::exception& error) {
  std::fprintf(stderr, "recompute: %s\n", error.what());
  return 1;
}
