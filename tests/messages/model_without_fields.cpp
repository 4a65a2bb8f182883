// expect: tapegrad: expected a model with parameters
#include <tapegrad/tapegrad.hpp>

struct Model {
  tapegrad::Linear<> layer{2, 3};
};

int main() {
  Model model;
  tapegrad::SGD<float> optimizer(tapegrad::parameters(model), {.lr = 0.1});
}
