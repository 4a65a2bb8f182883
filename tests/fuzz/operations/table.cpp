/// The operations of engine/ops/ops.hpp in its order, one per line, and recompute.
#include <cstddef>
#include <functional>
#include <vector>

#include "elementwise.hpp"
#include "losses.hpp"
#include "rows.hpp"
#include "smooth.hpp"
#include "views.hpp"

namespace fuzz {

namespace {

template <class F> std::function<Step(Draw&)> unary(F f, Smooth smooth = {}) {
  return [=](Draw& d) {
    return Step(
        {d.input()}, [=](const auto& v) { return f(v[0]); }, smooth);
  };
}

template <class F> std::function<Step(Draw&)> binary(F f, Smooth smooth = {}) {
  return [=](Draw& d) {
    return Step(
        d.two_to_broadcast(), [=](const auto& v) { return f(v[0], v[1]); }, smooth);
  };
}

/// f takes the tensor and a number.
template <class F> std::function<Step(Draw&)> with_number(F f, double low, double high, Smooth smooth = {}) {
  return [=](Draw& d) {
    const double number = d.number(low, high);
    return Step(
        {d.input()}, [=](const auto& v) { return f(v[0], number); }, smooth);
  };
}

template <class F> std::function<Step(Draw&)> along_axis(F f) {
  return [=](Draw& d) {
    const Input x = d.input();
    const std::ptrdiff_t axis = d.axis(x);
    return Step({x}, [=](const auto& v) { return f(v[0], axis); });
  };
}

/// f takes the tensor, axes and keepdims. If it returns maxima, equal ones are a kink.
template <class F> std::function<Step(Draw&)> over_axes(F f, bool gives_maximum = false) {
  return [=](Draw& d) {
    const Input x = d.input();
    const tg::Axes axes = d.axes(x);
    const tg::KeepDims keep{d.chance(2)};
    const Smooth smooth = [=](const Values<double>& v) { return !gives_maximum || has_clear_maximum(v[0], axes); };
    return Step(
        {x}, [=](const auto& v) { return f(v[0], axes, keep); }, smooth);
  };
}

template <class F> std::function<Step(Draw&)> triangle(F f) {
  return [=](Draw& d) {
    const std::ptrdiff_t diagonal = static_cast<std::ptrdiff_t>(d.below(12)) - 6;
    return Step({d.input()}, [=](const auto& v) { return f(v[0], diagonal); });
  };
}

/// f chooses between its operands. Equal elements are a kink.
template <class F> std::function<Step(Draw&)> winner(F f) {
  return binary(f, [](const Values<double>& v) { return away((v[0] - v[1]).value(), 0); });
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all{
      {"a + b", binary([](const auto& a, const auto& b) { return a + b; })},
      {"x + number", with_number([](const auto& x, double b) { return x + b; }, -2, 2)},
      {"number + x", with_number([](const auto& x, double a) { return a + x; }, -2, 2)},
      {"a - b", binary([](const auto& a, const auto& b) { return a - b; })},
      {"x - number", with_number([](const auto& x, double b) { return x - b; }, -2, 2)},
      {"number - x", with_number([](const auto& x, double a) { return a - x; }, -2, 2)},
      {"a * b", binary([](const auto& a, const auto& b) { return a * b; })},
      {"x * number", with_number([](const auto& x, double b) { return x * b; }, -2, 2)},
      {"number * x", with_number([](const auto& x, double a) { return a * x; }, -2, 2)},
      {"a / b", binary([](const auto& a, const auto& b) { return a / b; }, off_zero(1))},
      {"x / number", with_number([](const auto& x, double b) { return x / b; }, 0.5, 2)},
      {"number / x", with_number([](const auto& x, double a) { return a / x; }, -2, 2, off_zero(0))},
      {"-x", unary([](const auto& x) { return -x; })},
      {"pow(x, number)", steps::power},
      {"pow(x, y)", binary([](const auto& x, const auto& y) { return tg::pow(x, y); }, above_zero())},
      {"pow(number, y)", with_number([](const auto& y, double x) { return tg::pow(x, y); }, 0.25, 2)},
      {"x += y", binary([](auto x, const auto& y) { return x += y; })},
      {"x -= y", binary([](auto x, const auto& y) { return x -= y; })},
      {"x *= y", binary([](auto x, const auto& y) { return x *= y; })},
      {"x /= y", binary([](auto x, const auto& y) { return x /= y; }, off_zero(1))},
      {"exp", unary([](const auto& x) { return tg::exp(x); })},
      {"log", unary([](const auto& x) { return tg::log(x); }, above_zero())},
      {"sqrt", unary([](const auto& x) { return tg::sqrt(x); }, above_zero())},
      {"abs", unary([](const auto& x) { return tg::abs(x); }, away_from({0}))},
      {"tanh", unary([](const auto& x) { return tg::tanh(x); })},
      {"sigmoid", unary([](const auto& x) { return tg::sigmoid(x); })},
      {"relu", unary([](const auto& x) { return tg::relu(x); }, away_from({0}))},
      {"clamp", steps::clamp},
      {"silu", unary([](const auto& x) { return tg::silu(x); })},
      {"softplus", steps::softplus},
      {"gelu", unary([](const auto& x) { return tg::gelu(x); })},
      {"gelu by tanh", unary([](const auto& x) { return tg::gelu(x, tg::Gelu::tanh); })},
      {"masked_fill", steps::masked_fill},
      {"where", steps::where},
      {"maximum", winner([](const auto& a, const auto& b) { return tg::maximum(a, b); })},
      {"minimum", winner([](const auto& a, const auto& b) { return tg::minimum(a, b); })},
      {"dropout", steps::dropout},
      {"matmul", steps::product},
      {"linear", steps::linear},
      {"einsum", steps::einsum},
      {"transpose", steps::transpose},
      {"permute", steps::permute},
      {"reshape", steps::reshape},
      {"unsqueeze", steps::unsqueeze},
      {"squeeze", unary([](const auto& x) { return tg::squeeze(x); })},
      {"squeeze an axis", along_axis([](const auto& x, std::ptrdiff_t axis) { return tg::squeeze(x, axis); })},
      {"expand", steps::expand},
      {"repeat", steps::repeat},
      {"repeat_interleave", steps::repeat_interleave},
      {"select", steps::select},
      {"narrow", steps::narrow},
      {"split", steps::split},
      {"roll", steps::roll},
      {"tril", triangle([](const auto& x, std::ptrdiff_t diagonal) { return tg::tril(x, diagonal); })},
      {"triu", triangle([](const auto& x, std::ptrdiff_t diagonal) { return tg::triu(x, diagonal); })},
      {"cat", steps::cat},
      {"stack", steps::stack},
      {"sum", over_axes([](const auto& x, const tg::Axes& axes, auto keep) { return tg::sum(x, axes, keep); })},
      {"mean", over_axes([](const auto& x, const tg::Axes& axes, auto keep) { return tg::mean(x, axes, keep); })},
      {"var", steps::var},
      {"amax", over_axes([](const auto& x, const tg::Axes& axes, auto keep) { return tg::amax(x, axes, keep); }, true)},
      {"gather", steps::gather},
      {"argmax", steps::argmax},
      {"max", steps::max},
      {"topk", steps::topk},
      {"softmax", along_axis([](const auto& x, std::ptrdiff_t axis) { return tg::softmax(x, axis); })},
      {"log_softmax", along_axis([](const auto& x, std::ptrdiff_t axis) { return tg::log_softmax(x, axis); })},
      {"layer_norm", steps::layer_norm},
      {"rms_norm", steps::rms_norm},
      {"embedding", steps::embedding},
      {"scaled_dot_product_attention", steps::scaled_dot_product_attention},
      {"multi_head_attention", steps::multi_head_attention},
      {"rotary_embedding", steps::rotary_embedding},
      {"masked_softmax", steps::masked_softmax},
      {"cross_entropy", steps::cross_entropy_of_labels},
      {"cross_entropy of probabilities", steps::cross_entropy_of_probabilities},
      {"binary_cross_entropy_with_logits", steps::binary_cross_entropy},
      {"mse_loss", steps::mse_loss},
      {"one_hot", steps::one_hot},
      {"causal_mask", steps::causal_mask},
      {"padding_mask", steps::padding_mask},
      {"recompute",
       unary([](const auto& x) { return tg::recompute([](const auto& h) { return tg::tanh(h) * h; }, x); })},
  };
  return all;
}

}  // namespace fuzz
