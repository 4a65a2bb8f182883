// Batch normalization as a layer of one's own: parameters, and running statistics that are saved but not trained.
#include <tapegrad/tapegrad.hpp>

#include <cmath>

#include "check.hpp"

namespace tg = tapegrad;
using Array = tg::Array<float>;
using Tensor = tg::Tensor<float>;

struct BatchNorm {
  tg::Parameter<float> weight, bias;  // (features)
  Array running_mean, running_var;    // (features), of all batches seen in training
  bool training = true;               // set by train and eval
  TAPEGRAD_FIELDS(weight, bias, running_mean, running_var)

  explicit BatchNorm(std::size_t features)
      : weight(Array(tg::Shape{features}, 1.0F)),
        bias(Array(tg::Shape{features}, 0.0F)),
        running_mean(tg::Shape{features}, 0.0F),
        running_var(tg::Shape{features}, 1.0F) {}

  // x: (B, features)
  Tensor operator()(const Tensor& x) {
    if (!training) return (x - running_mean) / tg::sqrt(Tensor(running_var) + 1e-5F) * weight + bias;
    const Tensor mean = tg::mean(x, {0}), var = tg::var(x, {0}, 0);
    running_mean = 0.9F * running_mean + 0.1F * mean.value();
    running_var = 0.9F * running_var + 0.1F * tg::var(x, {0}).value();
    return (x - mean) / tg::sqrt(var + 1e-5F) * weight + bias;
  }
};

int main() {
  tg::manual_seed(6);
  BatchNorm norm(3);
  check(tg::count_parameters(norm) == 6);
  for (int step = 0; step < 100; ++step) {
    const Tensor x = tg::normal<float>({64, 3}, 5, 2);
    const tg::Tape tape;
    tg::zero_grad(norm);
    const Tensor y = norm(x);
    tg::sum(y * y).backward();
    check_close(tg::mean(y, {0}).value(), Array{0, 0, 0}, 1e-4);
    check_close(tg::var(y, {0}, 0).value(), Array{1, 1, 1}, 1e-4);
    check(norm.weight.has_grad() && norm.bias.has_grad());
  }
  check_close(norm.running_mean, Array{5, 5, 5}, 0.1);
  check_close(norm.running_var, Array{4, 4, 4}, 0.1);

  tg::eval(norm);
  tg::save(norm, "norm.safetensors");
  BatchNorm loaded(3);
  tg::load(loaded, "norm.safetensors");
  tg::eval(loaded);
  const Tensor x = tg::normal<float>({2, 3}, 5, 2);
  check_close(loaded(x).value(), norm(x).value(), 0);
  check(std::abs(tg::mean(loaded(x)).item()) < 2);
}
