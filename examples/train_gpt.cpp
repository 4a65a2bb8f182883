// Trains a byte-level GPT on a text file, saves the weights with the lowest validation loss and prints a sample.
//   build/release/examples/train_gpt tinyshakespeare.txt [steps]
//
// Get tinyshakespeare (1.1 MB) from
//   https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt
// The default of 2,000 steps takes one to two minutes on two cores. With 0 steps, the program only samples.
//
// The weights are saved as tinyshakespeare-gpt.safetensors in the working folder. Later runs start from them.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xview.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace tg = tapegrad;

constexpr std::size_t kVocabulary = 256, kContext = 64, kWidth = 128, kHeads = 4, kLayers = 4, kBatch = 12;
constexpr std::size_t kMinBytes = 20 * kContext;  // of a text
constexpr double kPeak = 2e-3;                    // of the learning rate, which decays to a tenth

struct Gpt {
  tg::Embedding<> tokens, positions;
  std::vector<tg::TransformerBlock<>> blocks;
  tg::LayerNorm<> norm;
  TAPEGRAD_FIELDS(tokens, positions, blocks, norm)

  Gpt() : tokens(kVocabulary, kWidth), positions(kContext, kWidth), norm(kWidth) {
    for (std::size_t i = 0; i < kLayers; ++i) blocks.push_back({kWidth, kHeads, {.dropout = 0}});
    tg::initialize_lecun(*this);
  }

  // ids (B, T) -> logits (B, T, 256) of the next bytes
  tg::Tensor<float> operator()(const tg::IntArray& ids) const {
    auto x = tokens(ids) + positions(tg::arange(ids.shape(1)));
    for (const auto& block : blocks) x = block(x, tg::AttentionMask::causal());
    return tg::linear(norm(x), tokens.weight);  // the embedding is the head
  }
};

struct Text {
  std::vector<std::int64_t> ids;  // bytes
  std::size_t train_end;          // the last tenth is for validation

  explicit Text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file || std::filesystem::is_directory(path))
      throw std::runtime_error("expected a readable text file, got \"" + path + "\"; check the path");
    for (char byte; file.get(byte);) ids.push_back(static_cast<unsigned char>(byte));
    if (ids.size() < kMinBytes)
      throw std::runtime_error(path + ": expected at least " + std::to_string(kMinBytes) + " bytes, got " +
                               std::to_string(ids.size()) + "; use a longer text");
    train_end = ids.size() * 9 / 10;
  }
};

struct Batch {
  tg::IntArray ids, next;  // (B, T)
};

// Cuts one sequence from each start.
Batch batch_at(const std::vector<std::int64_t>& ids, const std::vector<std::size_t>& starts) {
  Batch batch{tg::IntArray(tg::Shape{starts.size(), kContext}), tg::IntArray(tg::Shape{starts.size(), kContext})};
  for (std::size_t b = 0; b < starts.size(); ++b)
    for (std::size_t t = 0; t < kContext; ++t) {
      batch.ids(b, t) = ids[starts[b] + t];
      batch.next(b, t) = ids[starts[b] + t + 1];
    }
  return batch;
}

Batch random_batch(const Text& text) {
  const auto starts = tg::uniform<double>({kBatch}, 0, static_cast<double>(text.train_end - kContext));
  return batch_at(text.ids, {starts.begin(), starts.end()});
}

// The mean loss over up to 200 sequences, spread evenly over the validation text.
float validation_loss(const Gpt& gpt, const Text& text) {
  const std::size_t end = text.ids.size() - kContext,
                    count = std::min<std::size_t>(200, (end - text.train_end) / kContext);
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < count; ++i) starts.push_back(text.train_end + i * (end - text.train_end) / count);
  const Batch batch = batch_at(text.ids, starts);
  return tg::cross_entropy(gpt(batch.ids), batch.next).item();
}

std::string sample(const Gpt& gpt, const Text& text, std::size_t length) {
  std::vector<std::int64_t> ids{text.ids.front()};
  std::string out;
  while (out.size() < length) {
    const std::size_t seen = std::min(ids.size(), kContext);
    const tg::IntArray window = tg::int_array(std::vector(ids.end() - std::ptrdiff_t(seen), ids.end()), {1, seen});
    ids.push_back(tg::sample<float>(xt::view(gpt(window).value(), 0, -1), {.temperature = 0.8})());
    // Early in training, the model also samples bytes that do not occur in the text.
    const bool in_text = std::find(text.ids.begin(), text.ids.end(), ids.back()) != text.ids.end();
    out += in_text ? static_cast<char>(ids.back()) : '?';
  }
  return out;
}

void train(Gpt& gpt, const Text& text, std::size_t steps, const std::string& checkpoint) {
  const auto parameters = tg::parameters(gpt);
  tg::AdamW<float> optimizer(parameters, {.lr = kPeak, .betas = {0.9, 0.99}, .weight_decay = 0.1});
  const tg::Schedule lr = tg::warmup_cosine(
      {.peak = kPeak, .floor = kPeak / 10, .warmup = std::min<std::size_t>(100, steps / 10), .steps = steps});
  const auto start = std::chrono::steady_clock::now();
  float best = validation_loss(gpt, text);
  std::cout << "step 0: validation loss " << best << '\n';
  for (std::size_t step = 1; step <= steps; ++step) {
    const Batch batch = random_batch(text);
    {
      const tg::Tape tape;
      optimizer.zero_grad();
      tg::cross_entropy(gpt(batch.ids), batch.next).backward();
    }
    tg::clip_grad_norm(parameters, 1.0);
    optimizer.set_lr(lr(step));
    optimizer.step();
    if (step % 250 != 0 && step != steps) continue;
    const float loss = validation_loss(gpt, text);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << "step " << step << ": validation loss " << loss << " after " << seconds.count() << " s" << std::endl;
    if (!(loss < best)) continue;  // also if it is NaN
    best = loss;
    tg::save(gpt, checkpoint);
  }
}

std::size_t parse_steps(const std::string& text) {
  std::size_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::runtime_error("expected a whole number of steps, got \"" + text + "\"; for example, 2000");
  return steps;
}

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) throw std::runtime_error("expected a text file: train_gpt text.txt [steps]");
  const std::size_t steps = argc > 2 ? parse_steps(argv[2]) : 2000;
  const Text text(argv[1]);
  const std::string checkpoint = std::filesystem::path(argv[1]).stem().string() + "-gpt.safetensors";
  if (steps == 0 && !std::filesystem::exists(checkpoint))
    throw std::runtime_error("expected saved weights in " + checkpoint +
                             ", got no such file; train with 1 or more steps first");
  Gpt gpt;
  std::cout << tg::count_parameters(gpt) << " parameters, " << text.ids.size() << " bytes of text\n";
  if (std::filesystem::exists(checkpoint)) {
    tg::load(gpt, checkpoint);
    std::cout << "loaded the weights in " << checkpoint << '\n';
  }
  if (steps > 0) {
    train(gpt, text, steps, checkpoint);
    if (std::filesystem::exists(checkpoint)) tg::load(gpt, checkpoint);  // those with the lowest loss
  }
  std::cout << sample(gpt, text, 500) << '\n';
} catch (const std::exception& error) {
  std::cerr << "train_gpt: " << error.what() << '\n';
  return 1;
}
