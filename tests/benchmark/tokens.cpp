// Times a GPT's tokens, written one by one with caches. In a narrow GPT it compares a late token with an early one, for
// attention over the cache. In GPT-2's size it compares a token with a plain loop on as many threads that reads as much
// memory as the weights take, since a product with one row is bound by them; and with weights in bfloat16.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include <cstdio>
#include <thread>
#include <vector>

#include "workloads.hpp"

namespace tg = tapegrad;
using benchmark::median, benchmark::milliseconds;

float sum_loop(const float* x, std::size_t n);

namespace {

struct Gpt {
  tg::Embedding<> tokens, positions;
  std::vector<tg::TransformerBlock<>> blocks;
  tg::LayerNorm<> norm;
  TAPEGRAD_FIELDS(tokens, positions, blocks, norm)

  Gpt(std::size_t vocabulary, std::size_t context, std::size_t layers, std::size_t heads, std::size_t width)
      : tokens(vocabulary, width), positions(context, width), norm(width) {
    for (std::size_t i = 0; i < layers; ++i) blocks.emplace_back(width, heads);
    tg::initialize_gpt2(*this);
  }

  // One id -> (1, 1, vocabulary)
  tg::Tensor<float> operator()(std::int64_t id, std::vector<tg::KeyValueCache<float>>& caches) const {
    const auto place = static_cast<std::int64_t>(caches.front().size());
    auto x = tokens(tg::int_array({{id}})) + positions(tg::int_array({place}));
    for (std::size_t i = 0; i < blocks.size(); ++i) x = blocks[i](x, caches[i]);
    return tg::linear(norm(x), tokens.weight);
  }
};

void late_tokens() {
  const Gpt gpt(65, 1100, 4, 4, 128);
  std::vector<double> early, late;
  for (int text = 0; text < 9; ++text) {
    std::vector<tg::KeyValueCache<float>> caches(gpt.blocks.size());
    for (std::size_t place = 0; place < 1010; ++place) {
      const double ms = milliseconds([&] { gpt(std::int64_t(place % 65), caches); });
      if (place >= 5 && place < 15) early.push_back(ms);
      if (place >= 990) late.push_back(ms);
    }
  }
  std::printf("width 128, 4 layers: token 10 %.1f us, token 1,000 %.1f us, %.2fx\n", 1e3 * median(early),
              1e3 * median(late), median(late) / median(early));
}

/// Sums floats in memory with the library's number of threads.
class Reader {
 public:
  explicit Reader(std::size_t size) : memory_(size, 1.0f), sums_(tg::num_threads()) {}

  void read() {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < sums_.size(); ++t)
      workers.emplace_back([this, t] {
        const std::size_t begin = t * memory_.size() / sums_.size(), end = (t + 1) * memory_.size() / sums_.size();
        sums_[t] = sum_loop(memory_.data() + begin, end - begin);
      });
  }

 private:
  std::vector<float> memory_;
  std::vector<float> sums_;
};

void wide_tokens() {
  constexpr std::size_t vocabulary = 50'257, context = 64, layers = 12, heads = 12, width = 768;
  const Gpt gpt(vocabulary, context, layers, heads, width);
  Gpt in_half(vocabulary, context, layers, heads, width);
  tg::hold_in_bfloat16(in_half);
  const std::size_t size = tg::count_parameters(gpt) - gpt.positions.weight.size();  // read for every token

  Reader reader(size);
  std::vector<tg::KeyValueCache<float>> caches(layers), caches_in_half(layers);
  std::vector<double> tokens, tokens_in_half, reads;
  for (std::int64_t place = 0; place < 40; ++place) {
    tokens.push_back(milliseconds([&] { gpt(place, caches); }));
    tokens_in_half.push_back(milliseconds([&] { in_half(place, caches_in_half); }));
    reads.push_back(milliseconds([&] { reader.read(); }));
  }
  const double gigabytes = 4e-9 * double(size), token = median(tokens), loop = median(reads);
  std::printf(
      "width 768, 12 layers: token %.2f ms, %.1f GB/s of weights; a loop that reads as much %.2f ms, %.1f GB/s: "
      "%.0f %% of that\n",
      token, 1e3 * gigabytes / token, loop, 1e3 * gigabytes / loop, 100 * loop / token);
  std::printf("weights held in bfloat16: token %.2f ms, %.2f times as fast\n", median(tokens_in_half),
              token / median(tokens_in_half));
}

}  // namespace

int main() {
  tg::manual_seed(0);
  late_tokens();
  wide_tokens();
}
