// Checksums of each operation's value and gradients, and of random numbers, for small arrays and for arrays shared by
// two threads.
#include <tapegrad/tapegrad.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bits.hpp"

namespace tg = tapegrad;
using namespace bits;

namespace {

template <class T> using Inputs = std::vector<tg::Parameter<T>>;
template <class T> using Operation = std::function<tg::Tensor<T>(const Inputs<T>&)>;

// Runs an operation on random inputs of these shapes. Prints its value, and the inputs' gradients for a random seed.
template <class T>
void check(const std::string& name, const std::vector<tg::Shape>& shapes, const Operation<T>& operation,
           double low = -2) {
  Inputs<T> x;
  for (const tg::Shape& shape : shapes) x.emplace_back(random_array<T>(shape, 10 + x.size(), low));
  tg::Tape tape;
  const tg::Tensor<T> y = operation(x);
  print(name, y);
  y.backward(random_array<T>(y.shape(), 20));
  for (const auto& p : x) print_grad("of " + name, p);
}

// The same for positive inputs.
template <class T>
void check_positive(const std::string& name, const std::vector<tg::Shape>& shapes, const Operation<T>& operation) {
  check<T>(name, shapes, operation, 0.1);
}

template <class T> void elementwise() {
  using X = const tg::Tensor<T>&;
  const std::pair<const char*, tg::Tensor<T> (*)(X)> any[] = {
      {"exp", [](X x) { return tg::exp(x); }},
      {"abs", [](X x) { return tg::abs(x); }},
      {"tanh", [](X x) { return tg::tanh(x); }},
      {"sigmoid", [](X x) { return tg::sigmoid(x); }},
      {"relu", [](X x) { return tg::relu(x); }},
      {"clamp", [](X x) { return tg::clamp(x, -0.5, 1) + tg::clamp(x, {}, 0); }},
      {"silu", [](X x) { return tg::silu(x); }},
      {"softplus", [](X x) { return tg::softplus(x, 2, 3); }},
      {"gelu", [](X x) { return tg::gelu(x) + tg::gelu(x, tg::Gelu::tanh); }},
      {"scalars", [](X x) { return 2 - (3 * x + 1) / 7 - (x - 4) + 2 / x + -x; }},
      {"powers", [](X x) { return tg::pow(x, 3) + tg::pow(x, 0) + tg::pow(2, x); }},
      {"twice", [](X x) { return x * x - x / x + (x + x) * (x - x); }},
      {"masked_fill", [](X x) { return tg::masked_fill(x, x.value() > 1, -9) + tg::where(x.value() > 0, x, x); }}};
  const std::pair<const char*, tg::Tensor<T> (*)(X)> positive[] = {
      {"log", [](X x) { return tg::log(x); }},
      {"sqrt", [](X x) { return tg::sqrt(x); }},
      {"pow of itself", [](X x) { return tg::pow(x, x) + tg::pow(x, -0.5); }}};
  for (const tg::Shape& shape : {tg::Shape{}, tg::Shape{3, 4, 5}, tg::Shape{130, 1031}}) {
    for (const auto& [name, f] : any) check<T>(name, {shape}, [f = f](const auto& x) { return f(x[0]); });
    for (const auto& [name, f] : positive) check_positive<T>(name, {shape}, [f = f](const auto& x) { return f(x[0]); });
  }
}

template <class T> void broadcasts() {
  const std::pair<tg::Shape, tg::Shape> shapes[] = {{{3, 1, 5}, {4, 1}},   {{7}, {}},
                                                    {{200, 1031}, {1031}}, {{200, 300}, {200, 1}},
                                                    {{1, 300}, {200, 1}},  {{0, 3}, {3}}};
  for (const auto& [a, b] : shapes) {
    check<T>("+", {a, b}, [](const auto& x) { return x[0] + x[1]; });
    check<T>("-", {b, a}, [](const auto& x) { return x[0] - x[1]; });
    check<T>("*", {a, b}, [](const auto& x) { return x[0] * x[1]; });
    check<T>("/", {b, a}, [](const auto& x) { return x[0] / x[1]; });
    check_positive<T>("pow", {a, b}, [](const auto& x) { return tg::pow(x[0], x[1]); });
    check<T>("where", {a, b}, [](const auto& x) { return tg::where(x[0].value() > 0, x[0], x[1]); });
    check<T>("compound", {a, b}, [](const auto& x) {
      tg::Tensor<T> y = x[0];
      y *= x[1], y += x[0], y -= 2, y /= x[1];
      return y;
    });
  }
  check<T>("masked_fill", {{4, 5}, {}}, [](const auto& x) { return tg::masked_fill(x[0], x[0].value() > 0, x[1]); });
}

template <class T> void views() {
  for (const tg::Shape& shape : {tg::Shape{2, 3, 4}, tg::Shape{40, 60, 70}}) {
    const auto each = [&](const char* name, auto f) {
      check<T>(name, {shape}, [f](const auto& x) { return tg::Tensor<T>(f(x[0])); });
    };
    each("transpose", [](const auto& x) { return tg::transpose(x, 0, -1); });
    each("permute", [](const auto& x) { return tg::permute(x, {2, 0, 1}) * 2; });
    each("reshape", [](const auto& x) { return tg::reshape(x, {-1, x.shape()[0]}); });
    each("squeeze", [](const auto& x) { return tg::squeeze(tg::squeeze(tg::unsqueeze(tg::unsqueeze(x, 1), -1), 1)); });
    each("expand", [](const auto& x) { return tg::expand(tg::narrow(x, 1, 2, 1), {2, -1, 5, -1}); });
    each("repeat", [](const auto& x) { return tg::repeat(x, {2, 1, 3, 1}); });
    each("repeat_interleave", [](const auto& x) { return tg::repeat_interleave(x, 3, 1); });
    each("select", [](const auto& x) { return tg::select(x, 1, -1) + tg::select(x, 1, 0); });
    each("narrow", [](const auto& x) { return tg::narrow(x, 2, 0, 3) * tg::narrow(x, 2, 1, 3); });
    each("split", [](const auto& x) { return tg::split(x, 3, -1)[0] - tg::split(x, 3, -1)[1]; });
    each("roll", [](const auto& x) { return tg::roll(x, 2, 1) * tg::roll(x, -5); });
    each("tril", [](const auto& x) { return tg::tril(x, -1) - tg::triu(x, 1); });
    each("cat", [](const auto& x) { return tg::cat({x, x * 3, x}, 1); });
    each("stack", [](const auto& x) { return tg::stack({tg::exp(x), x, x}, -1); });
  }
}

template <class T> void reductions() {
  for (const tg::Shape& shape : {tg::Shape{2, 3, 4}, tg::Shape{40, 60, 70}})
    for (const tg::Axes& axes : {tg::Axes{}, tg::Axes{0}, tg::Axes{-1}, tg::Axes{0, 2}}) {
      const auto name = [&](const char* operation) { return operation + (" over " + tg::to_string(axes)); };
      check<T>(name("sum"), {shape}, [&](const auto& x) { return tg::sum(x[0], axes); });
      check<T>(name("mean"), {shape}, [&](const auto& x) { return tg::mean(x[0], axes, tg::keepdims); });
      check<T>(name("var"), {shape}, [&](const auto& x) { return tg::var(x[0], axes, 1, tg::keepdims); });
      check<T>(name("amax"), {shape}, [&](const auto& x) { return tg::amax(tg::relu(x[0]), axes); });
    }
}

template <class T> void rows() {
  for (const tg::Shape& shape : {tg::Shape{2, 3, 9}, tg::Shape{40, 20, 130}}) {
    const std::size_t n = shape[2];
    const auto index = random_ids({shape[0], 5, n}, 3);
    check<T>("gather", {shape}, [&](const auto& x) { return tg::gather(x[0], 1, index); });
    check<T>("max", {shape}, [](const auto& x) {
      const auto [values, indices] = tg::max(tg::relu(x[0]), 1);
      print("indices", indices), print("argmax", tg::argmax(x[0], -1));
      return values;
    });
    check<T>("topk", {shape},
             [](const auto& x) { return tg::topk(x[0], 3).values * tg::topk(x[0], 3, -1, false).values; });
    for (const int axis : {0, 1, 2}) {
      check<T>("softmax", {shape}, [&](const auto& x) { return tg::softmax(x[0], axis); });
      check<T>("log_softmax", {shape}, [&](const auto& x) { return tg::log_softmax(x[0], axis); });
    }
    check<T>("layer_norm", {shape, {n}, {n}}, [](const auto& x) { return tg::layer_norm<T>(x[0], x[1], x[2]); });
    check<T>("layer_norm", {shape}, [](const auto& x) { return tg::layer_norm<T>(x[0], {}, {}); });
    check<T>("layer_norm", {shape, {shape[1], n}},
             [](const auto& x) { return tg::layer_norm<T>(x[0], x[1], {}, 0.1); });
    check<T>("rms_norm", {shape, {n}},
             [](const auto& x) { return tg::rms_norm<T>(x[0], x[1]) * tg::rms_norm<T>(x[0]); });
    for (const std::int64_t padding : {0, 4})
      check<T>("embedding", {{6, n}}, [&](const auto& x) { return tg::embedding<T>(x[0], index, padding); });
  }
}

template <class T> void products() {
  const std::pair<tg::Shape, tg::Shape> shapes[] = {{{5}, {5}},
                                                    {{4, 5}, {5}},
                                                    {{5}, {5, 4}},
                                                    {{2, 5}, {5, 3}},
                                                    {{3, 1, 2, 5}, {4, 5, 7}},
                                                    {{300, 128}, {128, 100}},
                                                    {{20, 60, 64}, {20, 64, 50}},
                                                    {{20, 60, 64}, {64, 50}},
                                                    {{1, 768}, {768, 400}}};
  for (const auto& [a, b] : shapes) check<T>("matmul", {a, b}, [](const auto& x) { return tg::matmul(x[0], x[1]); });
  check<T>("square", {{80, 80}}, [](const auto& x) { return tg::matmul(tg::transpose(x[0], 0, 1), x[0]); });
  for (const std::size_t rows : {1, 4, 30, 700}) {
    check<T>("linear", {{rows, 70}, {90, 70}, {90}}, [](const auto& x) { return tg::linear(x[0], x[1], x[2]); });
    check<T>("linear", {{2, rows, 70}, {90, 70}}, [](const auto& x) { return tg::linear(x[0], x[1]); });
  }
  for (const char* equation : {"abc,adc->abd", "abc,adc->dba", "abc,adc->ac", "abc,adc->bd", "abc,adc->"})
    check<T>(equation, {{6, 20, 30}, {6, 25, 30}}, [&](const auto& x) { return tg::einsum(equation, x[0], x[1]); });
}

template <class T> void attention() {
  const auto allowed = tg::AttentionMask::boolean(tg::BoolArray(random_array<T>({1, 1, 50, 70}) > -1));
  const auto bias = tg::AttentionMask::additive(random_array<double>({3, 4, 1, 70}));
  const auto lengths = tg::AttentionMask::valid_lens(random_ids({3, 50}, 75));
  const tg::AttentionMask masks[] = {{}, tg::AttentionMask::causal(), allowed, bias, lengths, allowed & bias & lengths};
  for (const auto& mask : masks) {
    const std::string name = "attention under mask " + std::to_string(&mask - masks);
    tg::Generator generator(3);
    const tg::AttentionOptions drop{.dropout = 0.2, .scale = 0.3, .generator = &generator};
    check<T>(name, {{3, 4, 50, 16}, {3, 4, 70, 16}, {3, 4, 70, 24}},
             [&](const auto& x) { return tg::scaled_dot_product_attention<T>(x[0], x[1], x[2], mask); });
    check<T>(name, {{3, 50, 64}, {3, 70, 32}, {3, 70, 20}}, [&](const auto& x) {
      const auto q = tg::rotary_embedding(x[0], 4), k = tg::rotary_embedding(x[1], 2, {.base = 100, .first = 3});
      return tg::multi_head_attention<T>(q, k, x[2], 4, mask, drop);
    });
    check<T>(name, {{3, 4, 50, 70}}, [&](const auto& x) { return tg::masked_softmax<T>(x[0], mask); });
  }
  for (const tg::Shape& q : {tg::Shape{1, 1, 16}, tg::Shape{1, 1100, 16}})
    check<T>("long attention", {q, {1, 1100, 16}}, [](const auto& x) {
      return tg::scaled_dot_product_attention<T>(x[0], x[1], x[1], tg::AttentionMask::causal());
    });
}

template <class T> void losses() {
  const tg::Array<T> weight = random_array<T>({11}, 3, 0.1);
  for (const std::size_t n : {5, 3000}) {
    const tg::Shape shape{n, 11};
    const tg::IntArray labels = random_ids({n}, 11);
    const tg::Array<T> targets = random_array<T>(shape, 4) > 0;
    for (const auto reduction : {tg::Reduction::mean, tg::Reduction::sum, tg::Reduction::none}) {
      const tg::CrossEntropyOptions<T> all[] = {
          {.reduction = reduction}, {3, 0.1, weight, reduction}, {-100, 0.2, {}, reduction}};
      for (const auto& o : all)
        check<T>("cross_entropy", {shape}, [&](const auto& x) { return tg::cross_entropy<T>(x[0], labels, o); });
      check<T>("cross_entropy", {shape, shape}, [&](const auto& x) {
        return tg::cross_entropy<T>(x[0], tg::softmax(x[1], -1), {-100, 0.1, weight, reduction});
      });
      check<T>("bce", {shape, shape}, [&](const auto& x) {
        return tg::binary_cross_entropy_with_logits<T>(x[0], tg::sigmoid(x[1]), {.reduction = reduction}) +
               tg::binary_cross_entropy_with_logits<T>(x[0], targets, {weight, weight, reduction});
      });
      check<T>("mse", {shape, shape}, [&](const auto& x) { return tg::mse_loss<T>(x[0], x[1], reduction); });
    }
  }
}

template <class T> void random_numbers() {
  tg::Generator generator(9);
  for (const tg::Shape& shape : {tg::Shape{}, tg::Shape{7}, tg::Shape{130, 1031}}) {
    print("uniform", tg::uniform<T>(shape, -1, 3));
    print("normal", tg::normal<T>(shape, 1, 2));
    print("uniform of a generator", tg::uniform<T>(shape, -1, 3, generator));
    print("normal of a generator", tg::normal<T>(shape, 1, 2, generator));
    const tg::Parameter<T> x(random_array<T>(shape));
    for (const double p : {0.1, 0.5}) {
      tg::Tape tape;
      const auto y = tg::dropout(tg::dropout(x, p), p, true, generator);
      print("dropout", y);
      y.backward(random_array<T>(shape, 7));
      print_grad("dropout", x);
    }
  }
  print("permutation", tg::random_permutation(1000, generator));
  print("sample", tg::sample(random_array<T>({50, 30}), {.temperature = 0.7, .top_k = 9, .top_p = 0.8}));
  print("key", tg::array<std::uint64_t>(std::vector{tg::Generator(generator).next_key(), generator.next_key()}));
}

}  // namespace

template <class T> std::vector<Case> bits::operation_cases() {
  return {{"elementwise", elementwise<T>},
          {"broadcasts", broadcasts<T>},
          {"views", views<T>},
          {"reductions", reductions<T>},
          {"rows", rows<T>},
          {"products", products<T>},
          {"attention", attention<T>},
          {"losses", losses<T>},
          {"random", random_numbers<T>}};
}

template std::vector<Case> bits::operation_cases<float>();
template std::vector<Case> bits::operation_cases<double>();
