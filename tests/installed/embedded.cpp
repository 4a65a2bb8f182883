// A program loads an embedded model, and has another embedded file; see embedded/ and CMakeLists.txt.
#include <tapegrad/tapegrad.hpp>

#include <embedded/model_safetensors.hpp>
#include <embedded/note.hpp>

#include <cstdint>
#include <string_view>

#include "check.hpp"

namespace tg = tapegrad;

int main() {
  tg::manual_seed(1);
  const tg::Linear<> saved(3, 2);
  tg::Linear<> loaded(3, 2);
  check(loaded.weight.value() != saved.weight.value());
  tg::load(loaded, embedded::model_safetensors());
  check(loaded.weight.value() == saved.weight.value());
  check(loaded.bias.value() == saved.bias.value());
  check(tg::load_metadata(embedded::model_safetensors()).at("classes") == "yes no");
  check(tg::read_safetensors(embedded::model_safetensors()).at("weight").as<float>() == saved.weight.value());

  const auto note = embedded::note();
  check(std::string_view(reinterpret_cast<const char*>(note.data()), note.size()) == "a note");
  for (const auto& bytes : {note, embedded::model_safetensors()})
    check(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0);
}
