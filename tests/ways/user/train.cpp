// A typical user's program: trains a model, saves it, writes a page, and gets an error for a mistake. Data exchanged
// with the library must be laid out equally, for any compiler flags of either. So this program's arrays go into the
// library's operations and back, xtensor's loops run on them in this program, and the library calls the rule of this
// program's operation. Finally it prints the sizes of types, to compare with the library's.
#include <tapegrad/tapegrad.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "../../installed/check.hpp"

namespace tg = tapegrad;

template <class T> tg::Tensor<T> cube(const tg::Tensor<T>& x) {
  return tg::record("cube", x.value() * x.value() * x.value(), {x},
                    [x = x.shared_value()](const auto& dy, auto& dx) { dx[0] += T(3) * *x * *x * dy; });
}

struct Model {
  tg::Embedding<> tokens{7, 6};
  tg::MultiHeadAttention<> attention{6, 2};
  tg::LayerNorm<> norm{6};
  tg::Linear<> head{6, 2};
  TAPEGRAD_FIELDS(tokens, attention, norm, head)
  tg::Tensor<float> operator()(const tg::IntArray& ids) const {
    return head(norm(tg::mean(attention(tokens(ids)), {1})));
  }
};

// Array sizes 1 to 40, divisible or not by any vector width. The values and gradients are known.
template <class T> void check_arrays() {
  for (std::size_t size = 1; size <= 40; ++size) {
    tg::Array<T> numbers = tg::Array<T>::from_shape({size});
    for (std::size_t i = 0; i < size; ++i) numbers(i) = static_cast<T>(i) / 4;
    check(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64 == 0);
    const tg::Array<T> twice = numbers + numbers;  // a loop compiled in this program
    tg::Parameter<T> p(twice);
    tg::Tape tape;
    tg::Tensor<T> result = cube(p * tg::Tensor<T>(numbers));  // 8 (n / 4)^6
    const tg::Array<T> expected = T(8) * xt::pow<6>(numbers);
    check_close(result.value(), expected, 1e-5);
    tg::sum(result).backward();
    const tg::Array<T> gradient = T(12) * xt::pow<5>(numbers);  // d (p n)^3 / dp = 3 p^2 n^3 at p = 2n
    check_close(p.grad(), gradient, 1e-5);
  }
}

float train(Model& model, const tg::IntArray& ids, const tg::IntArray& labels) {
  tg::AdamW<float> optimizer(tg::parameters(model), {.lr = 0.02});
  float loss = 0;
  for (int step = 0; step < 60; ++step) {
    tg::Tape tape;
    optimizer.zero_grad();
    const tg::Tensor<float> result = tg::cross_entropy(model(ids), labels);
    result.backward();
    tg::clip_grad_norm(tg::parameters(model), 1.0);
    optimizer.step();
    loss = result.item();
  }
  return loss;
}

#ifndef TAPEGRAD_NO_PAGE
void check_page(const Model& model, const tg::IntArray& ids, const tg::IntArray& labels) {
  const std::filesystem::path path = "step.html";
  {
    tg::Tape tape({.keep_values = true});
    tg::cross_entropy(model(ids), labels).backward();
    tg::save_page(tape, path, {.title = "By this way"});
  }
  std::ifstream file(path, std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  for (const char* text : {"<title>By this way</title>", "function prepareStep", "attention.k_proj.bias"})
    check(page.find(text) != std::string::npos);
}
#endif

int main() {
  check_arrays<float>();
  check_arrays<double>();
  {
    tg::manual_seed(5);
    const tg::IntArray ids{{0, 1, 4}, {2, 2, 3}, {6, 5, 1}, {3, 3, 0}}, labels{0, 1, 1, 0};
    Model model, loaded;
    const float loss = train(model, ids, labels);
    check(loss < 0.1F);
    check_close(tg::argmax(model(ids), -1), labels, 0);

    const std::filesystem::path path = "model.safetensors";
    tg::save(model, path);
    tg::load(loaded, path);
    std::filesystem::remove(path);
    check_close(loaded(ids).value(), model(ids).value(), 0);
#ifndef TAPEGRAD_NO_PAGE
    check_page(model, ids, labels);
#endif

    check_error<std::invalid_argument>(
        [&] {
          model.head(tg::Tensor<float>(tg::Array<float>{{1, 2, 3}}));
        },
        {"linear", "(1, 3)"});
    check_error<std::out_of_range>([&] { model(tg::IntArray{{7, 1}}); }, {"embedding", "7"});
    check_error<std::runtime_error>([&] { tg::load(loaded, "no such file"); }, {"no such file"});
  }
  check(tg::pool_blocks_in_use() == 0);

#define PRINT_SIZE(...) std::cout << #__VA_ARGS__ << ' ' << sizeof(__VA_ARGS__) << ' ' << alignof(__VA_ARGS__) << '\n'
  PRINT_SIZE(tg::Shape);
  PRINT_SIZE(tg::Array<float>);
  PRINT_SIZE(tg::IntArray);
  PRINT_SIZE(tg::BoolArray);
  PRINT_SIZE(tg::Tensor<float>);
  PRINT_SIZE(tg::Parameter<float>);
  PRINT_SIZE(tg::Parameters<float>);
  PRINT_SIZE(tg::AttentionMask);
  PRINT_SIZE(tg::Generator);
  PRINT_SIZE(tg::Tape);
  PRINT_SIZE(tg::TapeOptions);
  PRINT_SIZE(tg::AdamW<float>);
  PRINT_SIZE(tg::SGD<double>);
  PRINT_SIZE(tg::MultiHeadAttention<>);
  PRINT_SIZE(tg::KeyValueCache<float>);
  PRINT_SIZE(Model);
}
