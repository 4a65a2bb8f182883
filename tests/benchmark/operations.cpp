// Times single operations with Google Benchmark, forward alone and with the backward pass:
//   operations --benchmark_filter=softmax
#include <tapegrad/tapegrad.hpp>

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace tg = tapegrad;
using benchmark::State;
using Tensor = tg::Tensor<float>;
using Parameters = std::vector<tg::Parameter<float>>;

namespace {

std::vector<tg::Parameter<float>> drawn(const std::vector<tg::Shape>& shapes) {
  tg::manual_seed(0);
  Parameters parameters;
  for (const tg::Shape& shape : shapes) parameters.emplace_back(tg::uniform<float>(shape, -1, 1));
  return parameters;
}

// Registers f, a function of parameters with these shapes, as name and as name/backward.
template <class F> void add(const std::string& name, const std::vector<tg::Shape>& shapes, F f) {
  benchmark::RegisterBenchmark(name.c_str(), [=](State& state) {
    const Parameters x = drawn(shapes);
    for (auto _ : state) benchmark::DoNotOptimize(f(x).value().data());
  })->UseRealTime();
  benchmark::RegisterBenchmark((name + "/backward").c_str(), [=](State& state) {
    Parameters x = drawn(shapes);
    const tg::Array<float> dy = tg::uniform<float>(f(x).shape(), -1, 1);
    for (auto _ : state) {
      tg::Tape tape;
      for (tg::Parameter<float>& parameter : x) parameter.zero_grad();
      f(x).backward(tg::Array<float>(dy));
    }
  })->UseRealTime();
}

tg::IntArray ids(const tg::Shape& shape, std::int64_t below) {
  tg::IntArray numbers(shape);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers.data()[i] = static_cast<std::int64_t>(i * 7919) % below;
  return numbers;
}

void add_all() {
  const tg::Shape big{3200, 512}, row{512}, column{3200, 1};
  add("add", {big, big}, [](const auto& x) { return x[0] + x[1]; });
  add("add_row", {big, row}, [](const auto& x) { return x[0] + x[1]; });
  add("add_column", {big, column}, [](const auto& x) { return x[0] + x[1]; });
  add("exp", {big}, [](const auto& x) { return tg::exp(x[0]); });
  add("tanh", {big}, [](const auto& x) { return tg::tanh(x[0]); });
  add("relu", {big}, [](const auto& x) { return tg::relu(x[0]); });
  add("gelu", {big}, [](const auto& x) { return tg::gelu(x[0]); });
  add("dropout", {big}, [](const auto& x) { return tg::dropout(x[0], 0.1); });
  add("sum_rows", {big}, [](const auto& x) { return tg::sum(x[0], {-1}); });
  add("sum_columns", {big}, [](const auto& x) { return tg::sum(x[0], {0}); });
  add("mean", {big}, [](const auto& x) { return tg::mean(x[0]); });
  add("softmax", {{3200, 100}}, [](const auto& x) { return tg::softmax(x[0], -1); });
  add("log_softmax", {{3200, 100}}, [](const auto& x) { return tg::log_softmax(x[0], -1); });
  add("cross_entropy_26", {{3200, 26}},
      [labels = ids({3200}, 26)](const auto& x) { return tg::cross_entropy(x[0], labels); });
  add("cross_entropy_50000", {{64, 50000}},
      [labels = ids({64}, 50000)](const auto& x) { return tg::cross_entropy(x[0], labels); });
  add("layer_norm", {big, row, row}, [](const auto& x) { return tg::layer_norm(x[0], x[1], x[2]); });
  add("embedding", {{26, 512}}, [words = ids({32, 100}, 26)](const auto& x) { return tg::embedding(x[0], words); });
  add("transpose", {{32, 100, 8, 64}}, [](const auto& x) { return tg::transpose(x[0], 1, 2); });
  add("matmul", {big, {512, 512}}, [](const auto& x) { return tg::matmul(x[0], x[1]); });
  add("matmul_batch", {{256, 100, 64}, {256, 64, 100}}, [](const auto& x) { return tg::matmul(x[0], x[1]); });
  add("linear", {big, {512, 512}, row}, [](const auto& x) { return tg::linear(x[0], x[1], x[2]); });
  for (const std::size_t heads : {1, 8})
    add("attention_causal/heads:" + std::to_string(heads), {{32, 100, 512}, {32, 100, 512}, {32, 100, 512}},
        [heads](const auto& x) {
          return tg::multi_head_attention<float>(x[0], x[1], x[2], heads, tg::AttentionMask::causal());
        });
}

// The overhead of an operation besides arithmetic: additions of scalars, only computed, recorded, or recorded with
// their backward pass. items_per_second divides by the number of operations.
constexpr int kChain = 1000;

template <class Step> void chain(State& state, Step step) {
  const Parameters x = drawn({{}});
  for (auto _ : state)
    step(x[0], [](const Tensor& first) {
      Tensor sum = first;
      for (int i = 0; i < kChain; ++i) sum = sum + first;
      return sum;
    });
  state.SetItemsProcessed(state.iterations() * kChain);
}

void chain_computed(State& state) {
  chain(state, [](const auto& x, auto add_up) { benchmark::DoNotOptimize(add_up(x).item()); });
}
void chain_recorded(State& state) {
  chain(state, [](const auto& x, auto add_up) {
    tg::Tape tape;
    benchmark::DoNotOptimize(add_up(x).item());
  });
}
void chain_swept(State& state) {
  chain(state, [](const auto& x, auto add_up) {
    tg::Tape tape;
    add_up(x).backward();
  });
}
BENCHMARK(chain_computed);
BENCHMARK(chain_recorded);
BENCHMARK(chain_swept);

void sgd_step(State& state) {
  Parameters x = drawn({{512, 512}});
  tg::SGD<float> optimizer({x[0]}, {.lr = 1e-6, .momentum = 0.9});
  x[0].set_grad(tg::Array<float>(x[0].shape(), 1.0f));
  for (auto _ : state) optimizer.step();
}
BENCHMARK(sgd_step)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
