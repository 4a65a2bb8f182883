#include "explain.hpp"

#include <algorithm>
#include <iostream>

#include "interrupt.hpp"
#include "program.hpp"

namespace examples {

void add_explain_options(CLI::App& app, ExplainOptions& options, const std::string& group,
                         const CLI::Validator& check) {
  const auto explain = [&](const std::string& text) {
    options.wanted = true;
    options.text = text;
  };
  app.add_option_function<std::string>("--explain", explain,
                                       "Save each head's attention weights on this text and their gradients\n"
                                       "to files, and draw a picture of the weights (requires gnuplot)")
      ->type_name("TEXT")
      ->check(check)
      ->group(group);
  app.add_option("--explain-to", options.name,
                 "Base name of these files; .csv, .npy, .gradients.npy and .png are\n"
                 "appended (default attention)")
      ->type_name("NAME")
      ->check(some_name())
      ->group(group);
}

void check_explain_options(const CLI::App& app) {
  if (app.count("--explain-to") > 0 && app.count("--explain") == 0)
    throw CLI::ValidationError("--explain-to", "requires --explain");
}

std::vector<std::string> attention_files(const ExplainOptions& options) {
  std::vector<std::string> files;
  if (!options.wanted) return files;
  for (const char* ending : {".csv", ".npy", ".gradients.npy", ".png"}) files.push_back(options.name + ending);
  return files;
}

void write_attention(const tapegrad::AttentionMap<float>& map, const std::string& name, const std::string& title) {
  write_whole([&] {
    tapegrad::save_csv(map, name + ".csv");
    tapegrad::save_npy(map.weights, name + ".npy");
    tapegrad::save_npy(map.gradients, name + ".gradients.npy");
  });
  const std::string shown = printable(name);
  std::cout << "weights and gradients of ";
  if (map.layers > 1) std::cout << map.layers << " layers of ";
  std::cout << map.weights.shape()[0] / map.layers << " heads, " << map.queries.size() << " x " << map.keys.size()
            << " tokens: " << shown << ".csv, " << shown << ".npy, " << shown << ".gradients.npy\n";
  write_whole([&] { tapegrad::save_picture(map, name + ".png", title); });
  std::cout << "picture of the weights: " << shown << ".png\n";
}

void write_attention(const std::vector<tapegrad::Tensor<float>>& weights, const std::vector<std::string>& queries,
                     const std::vector<std::string>& keys, const std::string& name, const std::string& title) {
  std::vector<tapegrad::AttentionMap<float>> maps;
  for (const auto& of_layer : weights) maps.push_back(tapegrad::attention_map(of_layer, 0, queries, keys));
  const std::size_t size = maps.front().weights.size();
  tapegrad::Shape shape = maps.front().weights.shape();
  shape[0] *= maps.size();
  tapegrad::AttentionMap<float> all{queries, keys, tapegrad::Array<float>(shape), tapegrad::Array<float>(shape),
                                    maps.size()};
  for (std::size_t i = 0; i < maps.size(); ++i) {
    std::copy_n(maps[i].weights.data(), size, all.weights.data() + i * size);
    std::copy_n(maps[i].gradients.data(), size, all.gradients.data() + i * size);
  }
  write_attention(all, name, title);
}

}  // namespace examples
