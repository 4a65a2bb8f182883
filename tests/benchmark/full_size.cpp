// Times the work of the program gpt2 with a folder of full size, e.g. from random_gpt2.py: full_size FOLDER
#include <tapegrad/tapegrad.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <vector>

#include "../../examples/common/shift.hpp"
#include "../../examples/gpt2/weights.hpp"
#include "workloads.hpp"

namespace tg = tapegrad;
using benchmark::median, benchmark::milliseconds;

namespace {

tg::IntArray random_ids(const Config& config, std::size_t batch, std::size_t length) {
  tg::IntArray ids(tg::Shape{batch, length});
  std::ranges::copy(benchmark::random_ids(batch * length, config.vocabulary), ids.begin());
  return ids;
}

// The first load allocates memory from the system, later ones reuse it.
LanguageModel<> load(const Config& config, const char* folder) {
  std::optional<LanguageModel<>> model;
  std::vector<double> times;
  for (int i = 0; i < 6; ++i) {
    model.reset();
    times.push_back(milliseconds([&] { model = load_model(config, folder); }));
  }
  std::printf("loading %.0f MB of weights: first %.2f s, then %.2f s\n", 4e-6 * double(tg::count_parameters(*model)),
              times.front() / 1e3, median(std::vector(times.begin() + 1, times.end())) / 1e3);
  return std::move(*model);
}

void prompt(LanguageModel<>& model, const Config& config) {
  const tg::IntArray ids = random_ids(config, 1, 512);  // (1, 512)
  std::vector<double> reading, training;
  for (int i = 0; i < 7; ++i) {
    tg::eval(model);
    reading.push_back(milliseconds([&] {
      LanguageModel<>::Caches caches;
      model(ids, caches);
    }));
    tg::train(model);
    training.push_back(milliseconds([&] {
      tg::Tape tape;
      model(ids);
    }));
  }
  std::printf("a prompt of 512 tokens: %.0f ms; a training forward pass over it: %.0f ms\n", median(reading),
              median(training));
}

void steps(LanguageModel<>& model, const Config& config) {
  tg::train(model);
  const tg::Parameters<float> parameters = tg::parameters(model);
  tg::AdamW<float> optimizer(parameters, {.lr = 1e-5});
  const auto [ids, next] = examples::shift(random_ids(config, 4, 65));  // (4, 64)
  std::vector<double> times;
  for (int i = 0; i < 13; ++i)
    times.push_back(milliseconds([&, &seen = ids, &said = next] {
      tg::Tape tape;
      optimizer.zero_grad();
      tg::cross_entropy(model(seen), said).backward();
      optimizer.step();
    }));
  std::printf("a training step of (4, 64) tokens with AdamW: %.0f ms\n",
              median(std::vector(times.begin() + 3, times.end())));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("expected a folder");
  const Config config = read_config(argv[1]);
  LanguageModel<> model = load(config, argv[1]);
  prompt(model, config);
  steps(model, config);
} catch (const std::exception& error) {
  std::fprintf(stderr, "full_size: %s\n", error.what());
  return 1;
}
