// expect: tapegrad: gradcheck needs double: make the model a template on its scalar
#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>

int main() {
  tapegrad::Linear<float> model(2, 1);
  const tapegrad::Tensor<float> x(tapegrad::Array<float>{{1, 2}});
  return tapegrad::testing::gradcheck([&] { return tapegrad::sum(model(x)); }, model).ok ? 0 : 1;
}
