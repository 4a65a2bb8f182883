// expect: tapegrad: a field listed in TAPEGRAD_FIELDS is const, so it cannot be trained or loaded
#include <tapegrad/tapegrad.hpp>

struct Model {
  const tapegrad::Linear<> layer{2, 3};
  TAPEGRAD_FIELDS(layer)
};

int main() {
  Model model;
  tapegrad::load(model, "model.safetensors");
}
