#include "explain.hpp"

#include <iostream>

#include "program.hpp"

namespace examples {

void require_attention_writable(const std::string& name) { require_writable(name + ".png"); }

void write_attention(const tapegrad::AttentionMap<float>& map, const std::string& name, const std::string& title) {
  tapegrad::save_csv(map, name + ".csv");
  tapegrad::save_npy(map.weights, name + ".npy");
  tapegrad::save_npy(map.gradients, name + ".gradients.npy");
  std::cout << "weights and gradients of " << map.weights.shape()[0] << " heads, " << map.queries.size() << " x "
            << map.keys.size() << " tokens: " << name << ".csv, " << name << ".npy, " << name << ".gradients.npy\n";
  tapegrad::save_picture(map, name + ".png", title);
  std::cout << "picture of the weights: " << name << ".png\n";
}

}  // namespace examples
