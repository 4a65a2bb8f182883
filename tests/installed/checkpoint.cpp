// A loaded model has the saved values; loading an unsuitable file throws and changes nothing.
#include <tapegrad/tapegrad.hpp>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "check.hpp"

namespace tg = tapegrad;

struct Model {
  tg::Linear<> hidden, head;
  TAPEGRAD_FIELDS(hidden, head)
  explicit Model(std::size_t classes) : hidden(3, 5), head(5, classes) {}
};

int main() {
  const std::filesystem::path path = "model.safetensors";  // in the current folder
  Model saved(2), loaded(2), wider(4);
  tg::save(saved, path);
  check(loaded.hidden.weight.value() != saved.hidden.weight.value());
  tg::load(loaded, path);
  check_close(loaded.hidden.weight.value(), saved.hidden.weight.value(), 0);
  check_close(loaded.head.bias.value(), saved.head.bias.value(), 0);
  check(loaded.head.weight.shape() == tg::Shape{2, 5});  // (out_features, in_features)

  const tg::Array<float> before = wider.hidden.weight.value();
  check_error<std::runtime_error>([&] { tg::load(wider, path); }, {"head.weight", "(4, 5)", "(2, 5)"});
  check_close(wider.hidden.weight.value(), before, 0);

  std::ofstream(path) << "no checkpoint";
  check_error<std::runtime_error>([&] { tg::load(loaded, path); }, {"model.safetensors"});
  std::filesystem::remove(path);
}
