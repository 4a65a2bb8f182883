// Times training steps of one workload with tapegrad.
#include <tapegrad/tapegrad.hpp>

#include "workloads.hpp"

namespace tg = tapegrad;
using benchmark::Workload;

namespace {

struct Model {
  tg::Embedding<> embedding;
  tg::MultiHeadAttention<> attention;
  tg::Linear<> head;
  bool causal;
  TAPEGRAD_FIELDS(embedding, attention, head)

  explicit Model(const Workload& w)
      : embedding(w.tokens, w.width),
        attention(w.width, w.heads),
        head(w.width, w.classes > 0 ? w.classes : w.tokens),
        causal(w.classes == 0) {}

  tg::Tensor<float> operator()(const tg::IntArray& ids) const {
    const auto x = embedding(ids);  // (B, T, D)
    return causal ? head(attention(x, tg::AttentionMask::causal())) : head(tg::mean(attention(x), {1}));
  }
};

tg::IntArray array_of(const std::vector<std::int64_t>& numbers, const tg::Shape& shape) {
  tg::IntArray array(shape);
  std::copy(numbers.begin(), numbers.end(), array.begin());
  return array;
}

double run(const Workload& w) {
  if (w.threads > 0) tg::set_num_threads(w.threads);
  Model model(w);
  tg::SGD<float> optimizer(tg::parameters(model), {.lr = 0.01});
  const tg::IntArray ids = array_of(benchmark::random_ids(w.batch * w.length, w.tokens), {w.batch, w.length});
  const tg::IntArray labels = w.classes > 0 ? array_of(benchmark::random_ids(w.batch, w.classes), {w.batch}) : ids;
  return benchmark::median_ms([&] {
    tg::Tape tape;
    optimizer.zero_grad();
    tg::cross_entropy(model(ids), labels).backward();
    optimizer.step();
  });
}

}  // namespace

int main(int argc, char** argv) { return benchmark::run_one(argc, argv, run); }
