// A generative adversarial network with an optimizer for each side: the generator learns a normal distribution.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xmath.hpp>

#include <cmath>

#include "check.hpp"

namespace tg = tapegrad;
using Tensor = tg::Tensor<float>;

struct Generator {
  tg::Linear<> output{1, 1};
  TAPEGRAD_FIELDS(output)
  Tensor operator()(const Tensor& noise) const { return output(noise); }
};

struct Discriminator {
  tg::Linear<> hidden{1, 32}, output{32, 1};
  TAPEGRAD_FIELDS(hidden, output)
  Tensor operator()(const Tensor& x) const { return output(tg::tanh(hidden(x))); }
};

int main() {
  tg::manual_seed(5);
  Generator generator;
  Discriminator discriminator;
  tg::Adam<float> of_generator(tg::parameters(generator), {.lr = 0.01, .betas = {0.5, 0.999}});
  tg::Adam<float> of_discriminator(tg::parameters(discriminator), {.lr = 0.01, .betas = {0.5, 0.999}});
  const std::size_t size = 128;
  const tg::Array<float> ones(tg::Shape{size, 1}, 1.0F), zeros(tg::Shape{size, 1}, 0.0F);
  const auto noise = [&] { return Tensor(tg::normal<float>({size, 1})); };

  for (int step = 0; step < 1500; ++step) {
    {
      const tg::Tape tape;
      const Tensor real = tg::normal<float>({size, 1}, 3, 0.5), fake = generator(noise()).detach();
      of_discriminator.zero_grad();
      (tg::binary_cross_entropy_with_logits(discriminator(real), ones) +
       tg::binary_cross_entropy_with_logits(discriminator(fake), zeros))
          .backward();
      of_discriminator.step();
    }
    const tg::Tape tape;
    of_generator.zero_grad();
    tg::binary_cross_entropy_with_logits(discriminator(generator(noise())), ones).backward();
    of_generator.step();
  }

  const tg::Array<float> made = generator(Tensor(tg::normal<float>({10000, 1}))).value();
  const float mean = xt::mean(made)(), deviation = std::sqrt(xt::mean(xt::square(made - mean))());
  check(std::abs(mean - 3) < 0.5F);
  check(deviation > 0.1F && deviation < 1.2F);
}
