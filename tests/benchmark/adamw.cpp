// Times a step of AdamW on 10 million parameters next to a plain loop on as many threads, in turn, and the pass over
// gradients for clipping next to a copy of them. Also prints the memory bandwidth of each.
#include <tapegrad/tapegrad.hpp>

#include <cstdio>
#include <thread>
#include <vector>

#include "workloads.hpp"

namespace tg = tapegrad;
using benchmark::median, benchmark::milliseconds;

void adamw_loop(float* p, const float* g, float* m, float* v, std::size_t n, float decay, float b1, float b2,
                float rate, float scale, float eps);

namespace {

constexpr std::size_t kSize = 10'000'000;
constexpr int kRounds = 41;

void print(const char* what, const std::vector<double>& times, double streams) {
  const double ms = median(times);
  std::printf("%-40s %6.2f ms  %5.1f GB/s\n", what, ms, streams * 4e-6 * kSize / ms);
}

}  // namespace

int main() {
  tg::manual_seed(0);
  tg::Parameter<float> parameter(tg::uniform<float>({kSize}, -1, 1));
  parameter.set_grad(tg::uniform<float>({kSize}, -1, 1));
  tg::AdamW<float> optimizer({parameter}, {.weight_decay = 0.1});
  tg::Array<float> p = parameter.value(), m(tg::Shape{kSize}, 0.0f), v = m;
  const tg::Array<float> g = parameter.grad();
  const std::size_t threads = tg::num_threads();
  const auto loop = [&] {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t)
      workers.emplace_back([&, begin = t * kSize / threads, end = (t + 1) * kSize / threads] {
        adamw_loop(p.data() + begin, g.data() + begin, m.data() + begin, v.data() + begin, end - begin, 0.9999f, 0.9f,
                   0.999f, 1e-3f, 1.0f, 1e-8f);
      });
  };

  std::vector<double> ours, loops, clips, ratios;
  for (int round = 0; round <= kRounds; ++round) {
    const double step = milliseconds([&] { optimizer.step(); }), plain = milliseconds(loop);
    const double clip = milliseconds([&] { tg::clip_grad_norm(tg::Parameters<float>{parameter}, 1e9); });
    if (round == 0) continue;  // the first round touches new memory
    ours.push_back(step), loops.push_back(plain), clips.push_back(clip), ratios.push_back(step / plain);
  }
  std::printf("%zu parameters, %zu threads, medians of %d rounds\n", kSize, threads, kRounds);
  print("AdamW::step", ours, 7);
  print("a plain loop, -march=native -ffast-math", loops, 7);
  print("clip_grad_norm", clips, 1);
  std::printf("AdamW::step takes %.3f of the loop's time, the median of the rounds' ratios\n", median(ratios));
}
