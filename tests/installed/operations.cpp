// Each operation in user code, with its value.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>

#include <cmath>

#include "check.hpp"

namespace tg = tapegrad;
using Array = xt::xarray<double>;
using Tensor = tg::Tensor<double>;

Array column(const Array& x) { return xt::reshape_view(x, {x.size(), std::size_t(1)}); }

const Tensor a(Array{{4, -1}, {2, 0.5}, {-3, 1}});  // (3, 2)
const Tensor b(column({2, -4, 0.5}));               // (3, 1)
const Tensor c(Array{1, 4});                        // (2)

Tensor ones(std::initializer_list<std::size_t> shape) { return Tensor(Array(xt::ones<double>(tg::Shape(shape)))); }

void arithmetic() {
  check_close((a + b).value(), Array{{6, 1}, {-2, -3.5}, {-2.5, 1.5}});
  check_close((a - c).value(), Array{{3, -5}, {1, -3.5}, {-4, -3}});
  check_close((b * a).value(), Array{{8, -2}, {-8, -2}, {-1.5, 0.5}});
  check_close((a / c).value(), Array{{4, -0.25}, {2, 0.125}, {-3, 0.25}});
  check_close((3.0 - c * 2.0).value(), Array{1, -5});
  check_close((1.0 + 8.0 / c - 0.5).value(), Array{8.5, 2.5});
  check_close((-c).value(), Array{-1, -4});
}

void elementwise() {
  check_close(tg::pow(c, 3.0).value(), Array{1, 64});
  check_close(tg::sqrt(c).value(), Array{1, 2});
  check_close(tg::exp(tg::log(c)).value(), Array{1, 4});
  check_close(tg::abs(b).value(), column({2, 4, 0.5}));
  check_close(tg::relu(b).value(), column({2, 0, 0.5}));
  check_close(tg::tanh(c).value(), Array{std::tanh(1.0), std::tanh(4.0)});
  check_close(tg::sigmoid(c).value(), Array{1 / (1 + std::exp(-1.0)), 1 / (1 + std::exp(-4.0))});
  check_close(tg::gelu(Tensor(Array{-1})).value(), Array{-0.15865525393145707});
  check_close(tg::gelu(Tensor(Array{-1}), tg::Gelu::tanh).value(), Array{-0.15880800939172324});
}

void products() {
  check_close(tg::matmul(a, c).value(), Array{0, 4, 1});
  check(tg::matmul(ones({6, 1, 3, 4}), ones({5, 4, 2})).shape() == tg::Shape{6, 5, 3, 2});
  check_close(tg::einsum("ni,nj->ij", a, b).value(), column({-1.5, -3.5}));
  check(tg::einsum("bthd,bshd->bhts", ones({2, 3, 4, 5}), ones({2, 6, 4, 5})).shape() == tg::Shape{2, 4, 3, 6});
}

void shapes() {
  check_close(tg::transpose(a, 0, 1).value(), Array{{4, 2, -3}, {-1, 0.5, 1}});
  check_close(tg::reshape(a, {2, -1}).value(), Array{{4, -1, 2}, {0.5, -3, 1}});
  check(tg::permute(ones({2, 3, 4}), {1, 2, 0}).shape() == tg::Shape{3, 4, 2});
  check(tg::unsqueeze(c, 0).shape() == tg::Shape{1, 2} && tg::squeeze(b, 1).shape() == tg::Shape{3});
  check_close(tg::expand(c, {2, 2}).value(), Array{{1, 4}, {1, 4}});
  check_close(tg::repeat(c, {3}).value(), Array{1, 4, 1, 4, 1, 4});
  check_close(tg::repeat_interleave(c, 3, 0).value(), Array{1, 1, 1, 4, 4, 4});
  const auto pieces = tg::split(a, 2, 0);
  check(pieces.size() == 2);
  check_close(pieces[1].value(), Array{{-3, 1}});  // the remaining row
  check_close(tg::cat({a, b}, 1).value(), Array{{4, -1, 2}, {2, 0.5, -4}, {-3, 1, 0.5}});
  check_close(tg::stack({c, c * 2.0}, 0).value(), Array{{1, 4}, {2, 8}});
  check_close(tg::select(a, 1, -1).value(), Array{-1, 0.5, 1});
  check_close(tg::narrow(a, 0, 1, 2).value(), Array{{2, 0.5}, {-3, 1}});
  check_close(tg::roll(c, 1, 0).value(), Array{4, 1});
  check_close(tg::tril(a).value(), Array{{4, 0}, {2, 0.5}, {-3, 1}});
  check_close(tg::triu(a).value(), Array{{4, -1}, {0, 0.5}, {0, 0}});
}

void reductions() {
  check(tg::sum(a).item() == 3.5 && tg::mean(c).item() == 2.5 && tg::amax(a).item() == 4);
  check_close(tg::sum(a, {-1}).value(), Array{3, 2.5, -2});
  check_close(tg::mean(a, {0}, tg::keepdims).value(), Array{{1, 0.5 / 3}});
  check_close(tg::amax(a, {1}).value(), Array{4, 2, 1});
  check(tg::argmax(a, 0)(0) == 0 && tg::argmax(a, 0)(1) == 2);
}

void choices() {
  const Tensor odds(Array{std::log(2.0), 0, 0});
  check_close(tg::softmax(odds, -1).value(), Array{0.5, 0.25, 0.25});
  check_close(tg::log_softmax(odds, 0).value(), Array{std::log(0.5), std::log(0.25), std::log(0.25)});
  const tg::BoolArray second{false, true};
  check_close(tg::masked_fill(a, second, 7).value(), Array{{4, 7}, {2, 7}, {-3, 7}});
  check_close(tg::where(second, b, a).value(), Array{{4, 2}, {2, -4}, {-3, 0.5}});
  check_close(tg::embedding(a, tg::IntArray{2, 0, 2}).value(), Array{{-3, 1}, {4, -1}, {-3, 1}});
}

void layers() {
  check_close(tg::dropout(a, 0).value(), a.value(), 0);
  check_close(tg::layer_norm(c, ones({2}), Tensor(Array{0, 10}), 0).value(), Array{-1, 11});
  check_close(tg::rms_norm(Tensor(Array{3, 4}), Tensor(Array{1, 2}), 12.5).value(), Array{0.6, 1.6});
  check_close(tg::rotary_embedding(ones({1, 2, 2}), 1).value(),
              Array{{{1, 1}, {std::cos(1.0) - std::sin(1.0), std::cos(1.0) + std::sin(1.0)}}});
  const Tensor x = ones({2, 3, 5, 4});  // (batch, heads, time, width)
  check_close(tg::scaled_dot_product_attention(x, x, x).value(), x.value());
  check_close(tg::scaled_dot_product_attention(x, x, x, tg::AttentionMask::causal()).value(), x.value());
}

void losses() {
  const Tensor logits(Array{{std::log(3.0), 0}, {0, 0}});
  const tg::IntArray classes{0, 1};
  const double first = std::log(4.0 / 3.0), second = std::log(2.0);
  check(std::abs(tg::cross_entropy(logits, classes).item() - (first + second) / 2) < 1e-12);
  check_close(tg::cross_entropy(logits, classes, {.reduction = tg::Reduction::none}).value(), Array{first, second});
  check(std::abs(tg::cross_entropy(logits, {-1, 1}, {.ignore_index = -1}).item() - second) < 1e-12);
  check(tg::cross_entropy(logits, classes, {.label_smoothing = 0.2, .weight = Array{1, 3}}).item() > 0);
  check(tg::mse_loss(c, Array{3, 3}).item() == 2.5 && tg::mse_loss(c, c * 1.0).item() == 0);
}

int main() {
  arithmetic();
  elementwise();
  products();
  shapes();
  reductions();
  choices();
  layers();
  losses();
}
