// expect: tapegrad: the operands are a Tensor<float> and a Tensor<double>. Convert one
#include <tapegrad/tapegrad.hpp>

int main() {
  tapegrad::Tensor<float> x = tapegrad::tensor({1, 2});
  x += tapegrad::tensor<double>({1, 2});
}
