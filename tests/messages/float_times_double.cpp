// expect: tapegrad: the operands are a Tensor<float> and a Tensor<double>. Convert one
#include <tapegrad/tapegrad.hpp>

int main() {
  const tapegrad::Tensor<float> x = tapegrad::tensor({1, 2});
  const tapegrad::Parameter<double> d(tapegrad::Array<double>{1, 2});
  return (x * d).size() == 2;
}
