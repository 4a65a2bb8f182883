// Attention composed of operations equals the layer's, with all masks.
#include <tapegrad/tapegrad.hpp>

#include <xtensor/xbuilder.hpp>
#include <xtensor/xmath.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "check.hpp"

namespace tg = tapegrad;
using Array = xt::xarray<double>;
using Tensor = tg::Tensor<double>;

constexpr std::size_t B = 2, T = 3, D = 8, H = 4;

Tensor heads_of(const Tensor& x) { return tg::transpose(tg::reshape(x, {B, T, H, D / H}), 1, 2); }  // (B, H, T, D/H)

int main() {
  tg::manual_seed(13);
  const Array values = xt::sin(xt::reshape_view(xt::arange<double>(B * T * D), {B, T, D}));
  const Tensor x(values);
  const tg::BoolArray keep{{true, true, false}, {true, true, true}};  // (B, T)
  const tg::BoolArray hide = xt::reshape_view(!keep, {B, std::size_t(1), std::size_t(1), T});

  // One projection for queries, keys and values; several heads; a padding mask.
  tg::MultiHeadAttention<double> layer(D, H);
  tg::Linear<double> q = layer.q_proj, k = layer.k_proj, v = layer.v_proj, out = layer.out_proj;
  const auto mask = tg::AttentionMask::key_padding(keep);
  {
    tg::Tape tape;
    const Tensor projected = tg::cat({q(x), k(x), v(x)}, -1);  // (B, T, 3 D)
    const auto parts = tg::split(projected, D, -1);
    check(parts.size() == 3);
    const Tensor scores = tg::matmul(heads_of(parts[0]), tg::transpose(heads_of(parts[1]), -1, -2)) / std::sqrt(D / H);
    const Tensor weights = tg::softmax(tg::masked_fill(scores, hide, -std::numeric_limits<double>::infinity()), -1);
    check(weights.value()(0, 0, 0, 2) == 0 && weights.value()(1, 0, 0, 2) > 0);
    const Tensor by_hand = out(tg::reshape(tg::transpose(tg::matmul(weights, heads_of(parts[2])), 1, 2), {B, T, D}));
    const Tensor by_layer = layer(x, mask);
    check_close(by_layer.value(), by_hand.value(), 1e-12);
    check_close(layer.attention_weights(x, x, mask).value(), weights.value(), 1e-12);
    (tg::sum(tg::tanh(by_hand)) + tg::sum(tg::tanh(by_layer))).backward();
  }
  check_close(layer.q_proj.weight.grad(), q.weight.grad(), 1e-10);
  check_close(layer.k_proj.weight.grad(), k.weight.grad(), 1e-10);
  check_close(layer.v_proj.bias.grad(), v.bias.grad(), 1e-10);
  check_close(layer.out_proj.weight.grad(), out.weight.grad(), 1e-10);

  // Dropout is the identity in evaluation.
  tg::Dropout dropout(0.5);
  tg::eval(dropout);
  check_close(dropout(x).value(), values, 0);

  // Queries, keys and values of different widths. A query without any key gets zeros.
  tg::MultiHeadAttention<double> cross(20, 5,
                                       {.query_dim = 6, .key_dim = 7, .value_dim = 8, .bias = false, .dropout = 0.3});
  tg::eval(cross);
  const Tensor queries(Array(xt::ones<double>({2, 3, 6}))), keys(Array(xt::ones<double>({2, 4, 7}))),
      contents(Array(xt::ones<double>({2, 4, 8})));
  const Array y = cross(queries, keys, contents, tg::AttentionMask::valid_lens(tg::IntArray{4, 0})).value();
  check(y.shape(0) == 2 && y.shape(1) == 3 && y.shape(2) == 20);
  check(y(0, 0, 0) != 0 && y(1, 0, 0) == 0 && y(1, 2, 19) == 0);

  check_error<std::invalid_argument>([] { tg::MultiHeadAttention<double>(20, 3); }, {"20", "3"});
}
