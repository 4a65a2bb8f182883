// Trains a character-level GPT on a text file, saves the best weights and writes a sample.
//   build/release/examples/train_gpt shakespeare.txt [steps]
// With gpt.safetensors from an earlier run in the working folder, training starts from those weights.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xview.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tg = tapegrad;

constexpr std::size_t kContext = 64, kWidth = 128, kHeads = 4, kLayers = 4, kBatch = 12;
constexpr double kPeak = 4e-3;  // learning rate
constexpr const char* kCheckpoint = "gpt.safetensors";

struct Gpt {
  tg::Embedding<> tokens, positions;
  std::vector<tg::TransformerBlock<>> blocks;
  tg::LayerNorm<> norm;
  TAPEGRAD_FIELDS(tokens, positions, blocks, norm)

  explicit Gpt(std::size_t vocabulary) : tokens(vocabulary, kWidth), positions(kContext, kWidth), norm(kWidth) {
    for (std::size_t i = 0; i < kLayers; ++i)
      blocks.emplace_back(kWidth, kHeads, tg::TransformerBlockOptions{.dropout = 0});
    tg::initialize_lecun(*this);
  }

  // ids (B, T) -> logits (B, T, vocabulary) of the next characters
  tg::Tensor<float> operator()(const tg::IntArray& ids) const {
    auto x = tokens(ids) + positions(xt::arange<std::int64_t>(ids.shape(1)));
    for (const auto& block : blocks) x = block(x, tg::AttentionMask::causal());
    return tg::linear(norm(x), tokens.weight);  // the embedding is the head
  }
};

struct Text {
  std::string characters;  // the vocabulary: id i stands for characters[i]
  std::vector<std::int64_t> ids;
  std::size_t train_end;  // the last tenth is for validation

  explicit Text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (text.size() < 20 * kContext)
      throw std::runtime_error("expected a text file of some length, got \"" + path + '"');
    std::map<char, std::int64_t> id;
    for (const char c : text) id[c];
    for (auto& [c, number] : id) {
      number = static_cast<std::int64_t>(characters.size());
      characters += c;
    }
    for (const char c : text) ids.push_back(id[c]);
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
    out += text.characters[std::size_t(ids.back())];
  }
  return out;
}

void train(Gpt& gpt, const Text& text, std::size_t steps) {
  const auto parameters = tg::parameters(gpt);
  tg::AdamW<float> optimizer(parameters, {.lr = kPeak, .betas = {0.9, 0.99}, .weight_decay = 0.1});
  const tg::Schedule lr = tg::warmup_cosine(
      {.peak = 2e-3, .floor = 2e-4, .warmup = std::min<std::size_t>(100, steps / 10), .steps = steps});
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
    if (loss >= best) continue;
    best = loss;
    tg::save(gpt, kCheckpoint);
  }
}

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("expected a text file: train_gpt text.txt [steps]");
  const Text text(argv[1]);
  Gpt gpt(text.characters.size());
  std::cout << tg::count_parameters(gpt) << " parameters, " << text.characters.size() << " characters\n";
  if (std::filesystem::exists(kCheckpoint)) {
    tg::load(gpt, kCheckpoint);
    std::cout << "starting from " << kCheckpoint << '\n';
  }
  train(gpt, text, argc > 2 ? std::stoul(argv[2]) : 2000);
  if (std::filesystem::exists(kCheckpoint)) tg::load(gpt, kCheckpoint);
  std::cout << sample(gpt, text, 500) << '\n';
} catch (const std::exception& error) {
  std::cerr << "train_gpt: " << error.what() << '\n';
  return 1;
}
