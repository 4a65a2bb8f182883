#include "table.hpp"

#include <cmath>

namespace operations {

template <class T> tg::Array<T> numbers(const Draw& draw, std::uint64_t key) {
  tg::Array<T> out(draw.shape);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double x = draw.low + (draw.high - draw.low) * tg::random_uniform(key, i);
    out.data()[i] = static_cast<float>(x + std::copysign(draw.gap, x));
  }
  return out;
}

template tg::Array<float> numbers(const Draw&, std::uint64_t);
template tg::Array<double> numbers(const Draw&, std::uint64_t);

tg::BoolArray drawn_mask(const tg::Shape& shape, std::uint64_t key) {
  tg::BoolArray mask(shape);
  for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = tg::random_uniform(key, i) < 2.0 / 3;
  return mask;
}

std::vector<Operand> operands_of(std::string_view axes) {
  std::vector<Operand> operands(1);
  for (const char c : axes) {
    Operand& operand = operands.back();
    if (c == ',')
      operands.emplace_back();
    else if (c == '.')
      operand.outer = Operand::broadcast;
    else if (c == '*')
      operand.outer = Operand::equal;
    else if (c == '1')
      operand.outer = Operand::batch;
    else if (c == '?')
      operand.axes.back().optional = true;
    else
      operand.axes.push_back({c, false});
  }
  return operands;
}

const Table& table() {
  static const Table all = [] {
    Table table;
    add_arithmetic(table);
    add_elementwise(table);
    add_products(table);
    add_views(table);
    add_reductions(table);
    add_attention(table);
    add_losses(table);
    add_indices(table);
    add_selection(table);
    return table;
  }();
  return all;
}

}  // namespace operations
