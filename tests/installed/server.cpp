// A server: eight threads answer questions with one model at the same time, while another thread trains a copy.
#include <tapegrad/tapegrad.hpp>

#include <atomic>
#include <thread>
#include <vector>

#include "check.hpp"

namespace tg = tapegrad;

struct Model {
  tg::Embedding<> embedding{16, 8};
  tg::TransformerBlock<> block{8, 2};
  tg::Linear<> head{8, 4};
  TAPEGRAD_FIELDS(embedding, block, head)
  tg::Tensor<float> operator()(const tg::IntArray& ids) const { return head(tg::mean(block(embedding(ids)), {1})); }
};

int main() {
  tg::manual_seed(7);
  Model served;
  tg::eval(served);
  const Model& model = served;
  const auto question = [](std::int64_t i) { return tg::IntArray{{i, i + 1, i + 2}}; };
  std::vector<tg::Array<float>> answers;
  for (std::int64_t i = 0; i < 8; ++i) answers.push_back(model(question(i)).value());

  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::int64_t i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 50; ++repeat)
        if (model(question(i)).value() != answers[static_cast<std::size_t>(i)]) ++wrong;
    });

  Model trained = served;  // its own parameters
  tg::train(trained);
  tg::SGD<float> optimizer(tg::parameters(trained), {.lr = 0.1});
  for (int step = 0; step < 50; ++step) {
    const tg::Tape tape;
    optimizer.zero_grad();
    tg::cross_entropy(trained(question(step % 8)), tg::IntArray{step % 4}).backward();
    optimizer.step();
  }
  for (std::thread& thread : threads) thread.join();
  check(wrong == 0);
  check(trained(question(0)).value() != answers[0]);
}
