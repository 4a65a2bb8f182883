// expect: tapegrad: the model is const, so its parameters cannot be trained
#include <tapegrad/tapegrad.hpp>

struct Model {
  tapegrad::Linear<> layer{2, 3};
  TAPEGRAD_FIELDS(layer)
};

int main() {
  const Model model;
  tapegrad::parameters(model);
}
