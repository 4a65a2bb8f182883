// Linear regression on the numbers of a CSV file, in shuffled mini-batches.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xcsv.hpp>
#include <xtensor/xview.hpp>

#include <fstream>
#include <string>

#include "check.hpp"

namespace tg = tapegrad;

int main() {
  tg::manual_seed(3);
  {
    std::ofstream csv("houses.csv");
    csv << "rooms,age,price\n";
    const tg::Array<float> drawn = tg::uniform<float>({100, 2}, -1, 1);
    for (std::size_t i = 0; i < 100; ++i)
      csv << drawn(i, 0) << ',' << drawn(i, 1) << ',' << 2 * drawn(i, 0) - 3 * drawn(i, 1) + 0.5 << '\n';
  }
  std::ifstream csv("houses.csv");
  std::string header;
  std::getline(csv, header);
  const tg::Array<float> table = xt::load_csv<float>(csv);
  check(table.shape(0) == 100 && table.shape(1) == 3);
  const tg::Array<float> features = xt::view(table, xt::all(), xt::range(0, 2));
  const tg::Array<float> prices = xt::view(table, xt::all(), xt::range(2, 3));

  tg::Linear<> model(2, 1);
  tg::SGD<float> optimizer(tg::parameters(model), {.lr = 0.1});
  for (int epoch = 0; epoch < 40; ++epoch)
    for (const auto& rows : tg::batches(100, 16)) {
      const tg::Tape tape;
      optimizer.zero_grad();
      tg::mse_loss(model(tg::rows(features, rows)), tg::rows(prices, rows)).backward();
      optimizer.step();
    }
  check_close(model.weight.value(), tg::Array<float>{{2, -3}}, 1e-3);
  check_close(model.bias.value(), tg::Array<float>{0.5}, 1e-3);
}
