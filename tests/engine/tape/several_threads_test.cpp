/// Concurrent use, line by line of the table in docs/threads_and_reproducibility.md. Also runs under ThreadSanitizer.
#include <tapegrad/engine/array/internal/parallel.hpp>

#include <doctest/doctest.h>
#include <xtensor/xview.hpp>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "small_gpt.hpp"
#include "temporary_folder.hpp"
#include "text.hpp"
#include "threads.hpp"

namespace tg = tapegrad;
using Arrays = std::vector<tg::Array<float>>;

namespace {

// Texts of 32 ids, large enough to split loops and products among the pool's threads.
tg::IntArray drawn_ids(tg::Generator& generator) {
  tg::IntArray ids = tg::random_permutation(16 * 32, generator);
  for (std::int64_t& id : ids) id %= 50;
  ids.reshape({16, 32});
  return ids;
}

// A few training steps: the last loss and all parameter values.
Arrays trained(SmallGpt& model, std::uint64_t seed) {
  tg::Generator generator(seed);
  tg::AdamW<float> optimizer(tg::parameters(model), {.lr = 0.01});
  Arrays results;
  for (int step = 0; step < 4; ++step) {
    const tg::IntArray ids = drawn_ids(generator);
    tg::Tape tape;
    optimizer.zero_grad();
    const auto x = tg::dropout(model.tokens(ids), 0.1, true, generator);
    const auto loss = tg::cross_entropy(model.head(model.block(x, tg::AttentionMask::causal())), ids);
    loss.backward();
    tg::clip_grad_norm(tg::parameters(model), 1.0);
    optimizer.step();
    if (step == 3) results.push_back(loss.value());
  }
  for (const auto& parameter : tg::parameters(model)) results.push_back(parameter->value());
  return results;
}

// Results of read-only operations on a model.
struct Results {
  tg::Array<float> logits, gelu;
  tg::Array<float> zeros;    // created on first access to a missing gradient
  tg::Array<float> written;  // token by token, through a cache
  std::size_t parameters;
  std::string texts;
  bool operator==(const Results&) const = default;
};

// Runs a test case on a new thread. The pool counts blocks per thread and a test case must free all of its blocks;
// counts of blocks passed between threads end with this thread.
void elsewhere(const std::function<void()>& test_case) { std::thread(test_case).join(); }

// Runs f(0), ..., f(count - 1) each on its own thread and waits for them.
void on_threads(std::size_t count, const std::function<void(std::size_t)>& f) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back(f, i);
  for (std::thread& thread : threads) thread.join();
}

// While it exists, another thread's loop occupies the pool.
class PoolAtWork {
 public:
  PoolAtWork()
      : thread_([this] {
          tg::detail::parallel_for(2, 2, [this](std::size_t, std::size_t) {
            has_begun_ = true;
            has_begun_.notify_all();
            may_end_.wait(false);
          });
        }) {
    has_begun_.wait(false);
  }
  ~PoolAtWork() {
    may_end_ = true;
    may_end_.notify_all();
    thread_.join();
  }
  PoolAtWork(const PoolAtWork&) = delete;
  PoolAtWork& operator=(const PoolAtWork&) = delete;

 private:
  std::atomic<bool> has_begun_{false}, may_end_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("Threads train copies of one model at once, with the same results as alone") {
  elsewhere([] {
    const Threads three(3);
    std::vector<SmallGpt> copies;  // share their arrays until each steps; the last owner steps in place
    std::vector<Arrays> alone(4), together(4);
    {
      tg::manual_seed(1);
      const SmallGpt model;
      copies.assign(4, model);
      for (std::size_t i = 0; i < 4; ++i) {
        SmallGpt copy = model;
        alone[i] = trained(copy, i);
      }
    }
    on_threads(4, [&](std::size_t i) { together[i] = trained(copies[i], i); });
    for (std::size_t i = 0; i < 4; ++i) CHECK(together[i] == alone[i]);
  });
}

TEST_CASE("Products of a batch have the same bits while another thread uses the pool") {
  const Threads three(3);
  tg::manual_seed(1);  // a loop over the batch; each product is large enough to be split among its threads
  const tg::Tensor<float> a(tg::uniform<float>({8, 64, 256}, -1, 1)), b(tg::uniform<float>({8, 256, 64}, -1, 1));
  const tg::Array<float> alone = tg::matmul(a, b).value();
  const PoolAtWork other;
  CHECK((tg::matmul(a, b).value() == alone));
}

TEST_CASE("Threads train separate models while the number of threads changes") {
  elsewhere([] {
    const Threads restored(tg::num_threads());
    tg::manual_seed(1);
    std::vector<SmallGpt> models(2);
    std::vector<float> alone(2), together(2);  // the last loss
    for (std::size_t i = 0; i < 2; ++i) {
      SmallGpt copy = models[i];
      alone[i] = trained(copy, i).front()();
    }
    std::atomic<int> training{2};
    on_threads(3, [&](std::size_t i) {
      if (i < 2) {
        together[i] = trained(models[i], i).front()();
        --training;
      } else {
        for (std::size_t n = 0; training > 0; ++n) {
          tg::set_num_threads(1 + n % 4);
          std::this_thread::yield();
        }
      }
    });
    for (std::size_t i = 0; i < 2; ++i)
      CHECK(together[i] == doctest::Approx(alone[i]).epsilon(1e-4));  // rounding depends on the thread count
  });
}

TEST_CASE("Eight threads read one const model without a tape") {
  const Threads three(3);
  tg::manual_seed(1);
  const SmallGpt model;
  const tg::Tensor<float> shared(tg::uniform<float>({64, 512}, -1, 1));
  const TemporaryFolder folder;
  const auto read = [&](std::size_t i) {
    tg::Generator generator(0);
    const tg::IntArray ids = drawn_ids(generator);
    tg::KeyValueCache<> cache;
    tg::Tensor<float> last;
    for (std::ptrdiff_t t = 0; t < 3; ++t)
      last = model.block(model.tokens(tg::IntArray(xt::view(ids, xt::all(), xt::range(t, t + 1)))), cache);
    Results results{model(ids).value(), tg::gelu(shared).value(),    model.head.weight.grad(),
                    last.value(),       tg::count_parameters(model), ""};
    for (const auto& [name, parameter] : tg::named_parameters(model)) results.texts += name + parameter->name();
    const std::string file = "model" + std::to_string(i) + ".safetensors";
    tg::save(model, folder.path(file));
    results.texts += folder.read(file);
    return results;
  };
  const Results alone = read(8);
  std::vector<Results> together(8);
  on_threads(8, [&](std::size_t i) { together[i] = read(i); });
  for (const Results& results : together) CHECK((results == alone));
}

TEST_CASE("Each thread has its own tapes and pauses") {
  const tg::Tape tape;
  std::size_t recorded = 0;
  bool elsewhere = true, paused = true;
  std::thread([&] {
    elsewhere = tg::Tape::records();
    const tg::Tape own;
    const tg::Parameter<float> w(tg::Array<float>{2});
    (w * w).backward();
    recorded = own.size();
    const tg::NoGrad pause;
    paused = tg::Tape::records();
  }).join();
  CHECK(recorded == 2);
  CHECK(tape.size() == 0);
  CHECK_FALSE(elsewhere);
  CHECK_FALSE(paused);
  CHECK(tg::Tape::records());
}

TEST_CASE("Any number of threads gives the same bits, except in large matrix products") {
  const auto computed = [](std::size_t count) {
    const Threads threads(count);
    tg::Generator generator(3);
    tg::Parameter<float> x(tg::normal<float>({16, 64, 96}, 0, 1, generator)),
        weight(tg::normal<float>({96}, 0, 1, generator)), table(tg::normal<float>({40, 96}, 0, 1, generator));
    const tg::IntArray ids = drawn_ids(generator) % 40;
    const tg::IntArray labels = tg::random_permutation(16 * 64, generator) % 96;
    tg::Tape tape;
    const auto y = tg::layer_norm(tg::gelu(x), weight, weight);
    const auto attended = tg::multi_head_attention(y, y, y * 2, 4, tg::AttentionMask::causal());
    const auto dropped = tg::dropout(attended, 0.3, true, generator);
    const auto rows = tg::embedding(table, ids);  // (16, 32, 96)
    const auto loss = tg::mean(tg::softmax(dropped, 1) * tg::exp(x * 0.1)) + tg::mean(tg::log_softmax(y, -1) * y) +
                      tg::sum(tg::mean(rows * rows, 1)) + tg::sum(tg::sum(x, 0) * tg::mean(attended, 0)) +
                      tg::cross_entropy(tg::reshape(y, {16 * 64, 96}), labels);
    loss.backward();
    const tg::Parameters<float> parameters{x, weight, table};
    Arrays results{loss.value(), attended.value()};
    for (const auto& parameter : parameters) results.push_back(parameter->grad());
    results.push_back(tg::Array<float>(tg::Shape{}, static_cast<float>(tg::clip_grad_norm(parameters, 1.0))));
    tg::AdamW<float>(parameters, {.lr = 0.1}).step();
    for (const auto& parameter : parameters) results.push_back(parameter->value());
    return results;
  };
  const Arrays on_one = computed(1);
  for (const std::size_t count : {2, 3, 4, 7, 64}) {
    CAPTURE(count);
    CHECK(computed(count) == on_one);
  }
}

TEST_CASE("Threads print and save pages of their own tapes at once, also to one file") {
  tg::manual_seed(1);
  const TemporaryFolder folder;
  const SmallGpt first, second;
  std::atomic<int> wrong{0};
  on_threads(3, [&](std::size_t i) {
    SmallGpt model = first;
    tg::Generator generator(i);
    const tg::IntArray ids = drawn_ids(generator);
    tg::Tape tape({.profile = true, .keep_values = true});
    tg::cross_entropy(model(ids), ids).backward();
    const std::string page = folder.path("page" + std::to_string(i) + ".html");
    tg::save_page(tape, page);
    if (printed(tape).empty() || folder.read("page" + std::to_string(i) + ".html").empty()) ++wrong;
    for (int n = 0; n < 5; ++n) tg::save(i % 2 == 0 ? first : second, folder.path("same.safetensors"));
  });
  CHECK(wrong == 0);
  SmallGpt loaded;
  tg::load(loaded, folder.path("same.safetensors"));  // one complete model or the other
  const auto& weight = loaded.head.weight.value();
  CHECK((weight == first.head.weight.value() || weight == second.head.weight.value()));
}
