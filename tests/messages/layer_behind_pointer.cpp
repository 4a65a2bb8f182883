// expect: tapegrad: a field listed in TAPEGRAD_FIELDS has a type that can be neither trained nor saved
#include <tapegrad/tapegrad.hpp>

#include <memory>

struct Model {
  tapegrad::Linear<> first{2, 3};
  std::unique_ptr<tapegrad::Linear<>> second = std::make_unique<tapegrad::Linear<>>(3, 2);
  TAPEGRAD_FIELDS(first, second)
};

int main() {
  const Model model;
  tapegrad::save(model, "model.safetensors");
}
