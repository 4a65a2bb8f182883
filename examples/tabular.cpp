// Predicts the last column of a CSV file from the other columns with a multilayer perceptron.
//   build/release/examples/tabular table.csv
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xcsv.hpp>
#include <xtensor/xview.hpp>

#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tg = tapegrad;
using Table = tg::Array<float>;  // (rows, columns)

struct Mlp {
  tg::Linear<> first, second, last;
  TAPEGRAD_FIELDS(first, second, last)

  explicit Mlp(std::size_t features) : first(features, 64), second(64, 64), last(64, 1) {}
  tg::Tensor<float> operator()(const tg::Tensor<float>& x) const {  // (B, features) -> (B, 1)
    return last(tg::relu(second(tg::relu(first(x)))));
  }
};

Table load(const std::string& path) try {
  std::ifstream file(path);
  std::string header;
  std::getline(file, header);
  std::stringstream lines;
  lines << file.rdbuf();
  // load_csv reads 7 from "7x", 2024 from "2024-01-15" and 15.01 from "15.01.2024".
  const std::regex not_a_number(R"([^-+.0-9eE, \r\n]|[0-9]-|\.[0-9]*\.)");
  if (std::regex_search(lines.str(), not_a_number)) throw std::runtime_error("");
  const Table table = xt::load_csv<float>(lines);
  if (table.shape(0) < 20 || table.shape(1) < 2) throw std::runtime_error("");
  return table;
} catch (const std::exception&) {
  throw std::runtime_error(
      path + ": expected a header line, then at least 20 lines of 2 or more numbers, separated by commas");
}

tg::Tensor<float> squared_error(const Mlp& model, const Table& table) {
  const Table features = xt::view(table, xt::all(), xt::range(0, -1));
  const Table target = xt::view(table, xt::all(), xt::range(table.shape(1) - 1, table.shape(1)));
  return tg::mse_loss(model(features), target);
}

// R²: 1 for perfect predictions, 0 for always predicting the mean.
float r_squared(const Mlp& model, const Table& table) {
  const auto target = xt::col(table, -1);
  return 1 - squared_error(model, table).item() / xt::mean(xt::square(target - xt::mean(target)()))();
}

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("expected a CSV file: tabular table.csv");
  const Table loaded = load(argv[1]);
  const std::size_t count = loaded.shape(0), train_end = count * 7 / 10, valid_end = count * 85 / 100;
  Table table = tg::rows(loaded, tg::random_permutation(count));
  const auto part = [&table](std::size_t from, std::size_t to) { return tg::rows(table, tg::arange(from, to)); };

  // Normalize every column by its mean and standard deviation over the training rows.
  const Table raw = part(0, train_end), mean = xt::mean(raw, {0});
  const Table deviation = xt::sqrt(xt::mean(xt::square(raw - mean), {0}) + 1e-12f);  // named, so computed once
  table = (table - mean) / deviation;
  const Table train = part(0, train_end), valid = part(train_end, valid_end);

  Mlp model(table.shape(1) - 1), best = model;
  tg::AdamW<float> optimizer(tg::parameters(model), {.lr = 3e-3});
  std::size_t best_epoch = 0;
  float best_r = -1e9f;
  for (std::size_t epoch = 1; epoch <= best_epoch + 20; ++epoch) {  // early stopping: 20 epochs without improvement
    for (const auto& chosen : tg::batches(train_end, 32)) {
      const tg::Tape tape;
      optimizer.zero_grad();
      squared_error(model, tg::rows(train, chosen)).backward();
      optimizer.step();
    }
    const float r = r_squared(model, valid);
    std::cout << "epoch " << epoch << ", validation R² " << r << '\n';
    if (r > best_r) best = model, best_r = r, best_epoch = epoch;
  }
  if (best_epoch == 0) throw std::runtime_error("expected different numbers in the last column; R² is not finite");
  std::cout << "test R² " << r_squared(best, part(valid_end, count)) << " after epoch " << best_epoch << '\n';
} catch (const std::exception& error) {
  std::cerr << "tabular: " << error.what() << '\n';
  return 1;
}
