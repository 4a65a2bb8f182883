// The model of examples/pronounce, without rotary positions and trained with AdamW, next to PyTorch's:
// encoder_decoder.py runs both.
//
//   encoder_decoder FILE
//
// Saves a model and a batch to the file, then prints the batch's loss, the median milliseconds of a training step, and
// of a word written token by token.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xoperation.hpp>

#include <cstddef>
#include <cstdint>
#include <iostream>

#include "../../examples/pronounce/model.hpp"
#include "workloads.hpp"

namespace tg = tapegrad;

namespace {

constexpr std::size_t words = 128, letters = 12, phonemes = 11, letter_ids = 31, phoneme_ids = 59;

tg::IntArray random_ids(std::size_t columns, std::size_t ids) {
  return xt::cast<std::int64_t>(tg::uniform<double>({words, columns}, 0, double(ids)));
}

/// The model and a batch. sources: (words, letters), targets: (words, phonemes + 1)
struct Workload {
  pronounce::EncoderDecoder<> model{{letter_ids, phoneme_ids, letters, phonemes}, {}};
  tg::IntArray sources = random_ids(letters, letter_ids);
  tg::IntArray targets = random_ids(phonemes + 1, phoneme_ids);
  TAPEGRAD_FIELDS(model, sources, targets)

  Workload() {  // PyTorch's layers have no rotary positions
    for (auto& block : model.encoder) block.attention.rotary_base.reset();
    for (auto& block : model.decoder) block.attention.rotary_base.reset();
  }
};

tg::IntArray columns(const tg::IntArray& ids, std::size_t first) {
  tg::IntArray chosen(tg::Shape{ids.shape()[0], phonemes});
  for (std::size_t row = 0; row < ids.shape()[0]; ++row)
    for (std::size_t t = 0; t < phonemes; ++t) chosen(row, t) = ids(row, first + t);
  return chosen;
}

double time_step(Workload& workload, double& first_loss) {
  const tg::BoolArray keep(workload.sources.shape(), true);
  const tg::IntArray before = columns(workload.targets, 0), next = columns(workload.targets, 1);
  const auto parameters = tg::parameters(workload.model);
  tg::AdamW<float> optimizer(parameters, {.lr = 1e-3});
  first_loss = 0;
  return benchmark::median_milliseconds(40, [&] {
    optimizer.zero_grad();
    const tg::Tape tape;
    const auto loss = tg::cross_entropy(workload.model(workload.sources, keep, before), next);
    if (first_loss == 0) first_loss = double(loss.item());
    loss.backward();
    tg::clip_grad_norm(parameters, 1);
    optimizer.step();
  });
}

/// Writes all phonemes of one word, each the likeliest after those before.
double time_word(const Workload& workload) {
  const tg::BoolArray keep(tg::Shape{1, letters}, true);
  tg::IntArray word(tg::Shape{1, letters});
  for (std::size_t t = 0; t < letters; ++t) word(0, t) = workload.sources(0, t);
  return benchmark::median_milliseconds(100, [&] {
    auto caches = workload.model.caches(workload.model.encode(word, keep));
    tg::IntArray last(tg::Shape{1, 1}, 1);
    for (std::size_t t = 0; t < phonemes; ++t) last = tg::argmax(workload.model(last, caches, keep).value(), -1);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: encoder_decoder FILE\n";
    return 2;
  }
  tg::manual_seed(1);
  Workload workload;
  tg::save(workload, argv[1]);
  double loss;
  const double word = time_word(workload), step = time_step(workload, loss);
  std::cout << loss << ' ' << step << ' ' << word << '\n';
}
