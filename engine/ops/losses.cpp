#include <algorithm>
#include <cmath>
#include <functional>

#include "../array/internal/error.hpp"
#include "../array/internal/parallel.hpp"
#include "../kernels/rows.hpp"
#include "../kernels/strided.hpp"
#include "../kernels/vector_loops.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace detail {

// Cross-entropy over C classes with class weights w and label smoothing e. For a row x with label y:
//   loss = (1 - e) w_y (lse - x_y) + e/C sum_c w_c (lse - x_c), where lse = log sum exp x
//   dloss/dx_c = p_c ((1 - e) w_y + e/C sum w) - (1 - e) w_y [c = y] - e/C w_c, where p = softmax(x)
template <class T> struct CrossEntropy {
  std::size_t classes;
  T smoothing;
  Value<T> weight;  // null: all 1

  T weight_of(std::size_t c) const { return weight ? weight->data()[c] : T(1); }
  T label_share(std::size_t y) const { return (1 - smoothing) * weight_of(y); }
  T smooth_share(std::size_t c) const { return smoothing / static_cast<T>(classes) * weight_of(c); }
  T total_share(std::size_t y) const {
    const T sum = weight ? sum_run(weight->data(), classes) : static_cast<T>(classes);
    return label_share(y) + smoothing / static_cast<T>(classes) * sum;
  }

  T loss(const T* x, std::size_t y, SumExp<T> exps) const {
    const T log_sum = std::log(exps.sum);
    const auto minus_log_p = [&](std::size_t c) { return log_sum + (exps.largest - x[c]); };
    double loss = label_share(y) * minus_log_p(y);  // in double: a float loses digits over many classes
    if (smoothing > 0)
      for (std::size_t c = 0; c < classes; ++c) loss += smooth_share(c) * minus_log_p(c);
    return static_cast<T>(loss);
  }

  // dx = dloss times the gradient above
  void backward(const T* x, std::size_t y, SumExp<T> exps, T dloss, T* dx) const {
    const T total = dloss * total_share(y) / exps.sum;
    vector_loops<T>().exp_scaled(x, dx, classes, exps.largest, total);
    if (smoothing > 0)
      for (std::size_t c = 0; c < classes; ++c) dx[c] -= dloss * smooth_share(c);
    dx[y] -= dloss * label_share(y);
  }
};

}  // namespace detail

using detail::chunks_for;
using detail::parallel_for;
using detail::require;
using detail::sum_run;

namespace {

template <class T> void check(const Tensor<T>& logits, const IntArray& labels, const CrossEntropyOptions<T>& options) {
  const Shape& shape = logits.shape();
  require(!shape.empty() && shape.back() > 0, "cross_entropy", "expected logits of shape (..., classes), given ",
          shape);
  const Shape leading(shape.begin(), shape.end() - 1);
  require(labels.shape() == leading, "cross_entropy", "expected labels of shape ", leading, " for logits of shape ",
          shape, ", given ", labels.shape());
  require(labels.size() > 0 || options.reduction != Reduction::mean, "cross_entropy",
          "expected at least one label to average over, given logits of shape ", shape);
  require(options.label_smoothing >= 0 && options.label_smoothing <= 1, "cross_entropy",
          "expected label_smoothing in [0, 1], given ", options.label_smoothing);
  require(!options.weight || options.weight->shape() == Shape{shape.back()}, "cross_entropy",
          "expected a weight of shape (", shape.back(), "), given ",
          [&] { return to_string(options.weight->shape()); });
  for (std::int64_t label : labels)
    detail::require_in_range(
        label == options.ignore_index || (label >= 0 && static_cast<std::size_t>(label) < shape.back()),
        "cross_entropy", "expected labels from 0 to ", shape.back() - 1, " or ignore_index ", options.ignore_index,
        ", given ", label);
}

}  // namespace

template <class T>
Tensor<T> cross_entropy(const Tensor<T>& logits, const IntArray& labels,
                        const CrossEntropyOptions<Scalar<T>>& options) {
  check(logits, labels, options);
  const Value<T> weight = options.weight ? Value<T>(make_value<T>(*options.weight)) : nullptr;
  const detail::CrossEntropy<T> rule{logits.shape().back(), static_cast<T>(options.label_smoothing), weight};
  const std::size_t rows = labels.size(), classes = rule.classes;

  Array<T> largest(labels.shape()), sums(labels.shape());
  Array<T> losses(labels.shape(), T(0)), counts(labels.shape(), T(0));
  parallel_for(rows, chunks_for(logits.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (labels.data()[i] == options.ignore_index) continue;
      const auto y = static_cast<std::size_t>(labels.data()[i]);
      const T* x = logits.value().data() + i * classes;
      const detail::SumExp<T> exps = detail::row_sum_exp(detail::vector_loops<T>(), x, classes);
      largest.data()[i] = exps.largest;
      sums.data()[i] = exps.sum;
      losses.data()[i] = rule.loss(x, y, exps);
      counts.data()[i] = rule.weight_of(y);
    }
  });
  const bool each = options.reduction == Reduction::none;
  const T factor = options.reduction == Reduction::mean ? 1 / sum_run(counts.data(), rows) : T(1);
  Array<T> loss = each ? std::move(losses) : Array<T>(Shape{}, sum_run(losses.data(), rows) * factor);

  return record(
      "cross_entropy", std::move(loss), {logits},
      [=, x = logits.shared_value(), largest = Value<T>(make_value<T>(std::move(largest))),
       sums = Value<T>(make_value<T>(std::move(sums))), labels = Value<std::int64_t>(make_value<std::int64_t>(labels)),
       ignored = options.ignore_index](const Array<T>& dy, auto& dx) {
        Array<T> gradient(x->shape());
        parallel_for(rows, chunks_for(gradient.size()), [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) {
            const std::int64_t label = labels->data()[i];
            T* g = gradient.data() + i * classes;
            if (label == ignored)
              std::fill_n(g, classes, T(0));
            else
              rule.backward(x->data() + i * classes, static_cast<std::size_t>(label),
                            {largest->data()[i], sums->data()[i]}, dy.data()[each ? i : 0] * factor, g);
          }
        });
        dx[0] += std::move(gradient);
      });
}

// y = (x - t)^2, dx = 2 (x - t) dy = -dt; the mean divides by the number of elements
template <class T> Tensor<T> mse_loss(const Tensor<T>& x, const Tensor<T>& target, Reduction reduction) {
  require(x.shape() == target.shape(), "mse_loss", "expected a target of shape ", x.shape(), ", given ",
          target.shape());
  require(x.size() > 0 || reduction != Reduction::mean, "mse_loss",
          "expected at least one element to average over, given shape ", x.shape());
  const Value<T> difference = make_value<T>(detail::zip<T>("mse_loss", x.value(), target.value(), std::minus<>()));
  const bool each = reduction == Reduction::none;
  const T factor = reduction == Reduction::mean ? 1 / static_cast<T>(x.size()) : T(1);
  Array<T> squares = detail::map<T>(*difference, [](T d) { return d * d; });
  Array<T> loss = each ? std::move(squares) : Array<T>(Shape{}, sum_run(squares.data(), squares.size()) * factor);
  return record("mse_loss", std::move(loss), {x, target}, [difference, factor](const Array<T>& dy, auto& dx) {
    Array<T> gradient = detail::zip<T>("mse_loss", *difference, dy, [factor](T d, T g) { return 2 * factor * d * g; });
    if (dx[1].needs_grad()) dx[1] += -gradient;
    dx[0] += std::move(gradient);
  });
}

#define INSTANTIATE(T)                                                                                        \
  template Tensor<T> cross_entropy(const Tensor<T>&, const IntArray&, const CrossEntropyOptions<Scalar<T>>&); \
  template Tensor<T> mse_loss(const Tensor<T>&, const Tensor<T>&, Reduction);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
