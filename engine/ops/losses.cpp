#include <algorithm>
#include <cmath>
#include <concepts>
#include <functional>
#include <optional>

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
  std::optional<Array<T>> weight;  // none: all 1
  // e/C sum w
  T smooth_sum =
      smoothing / static_cast<T>(classes) * (weight ? sum_run(weight->data(), classes) : static_cast<T>(classes));

  T weight_of(std::size_t c) const { return weight ? weight->data()[c] : T(1); }
  T label_share(std::size_t y) const { return (1 - smoothing) * weight_of(y); }
  T smooth_share(std::size_t c) const { return smoothing / static_cast<T>(classes) * weight_of(c); }
  // The same for probabilities t instead of a label; they share the remaining 1 - e.
  T share(const T* t, std::size_t c) const { return (1 - smoothing) * weight_of(c) * t[c] + smooth_share(c); }
  T total_share(std::size_t y) const { return label_share(y) + smooth_sum; }

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

  // With probabilities t, the shares are q_c = (1 - e) w_c t_c + e/C w_c, and
  //   loss = sum_c q_c (lse - x_c), dloss/dx_c = p_c sum q - q_c, dloss/dt_c = (1 - e) w_c (lse - x_c)
  T loss(const T* x, const T* t, SumExp<T> exps) const {
    const T log_sum = std::log(exps.sum);
    double loss = 0;
    for (std::size_t c = 0; c < classes; ++c) loss += share(t, c) * (log_sum + (exps.largest - x[c]));
    return static_cast<T>(loss);
  }

  void backward(const T* x, const T* t, SumExp<T> exps, T dloss, T* dx) const {
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += share(t, c);
    vector_loops<T>().exp_scaled(x, dx, classes, exps.largest, dloss * static_cast<T>(total) / exps.sum);
    for (std::size_t c = 0; c < classes; ++c) dx[c] -= dloss * share(t, c);
  }

  void backward_to_probabilities(const T* x, SumExp<T> exps, T dloss, T* dt) const {
    const T log_sum = std::log(exps.sum);
    for (std::size_t c = 0; c < classes; ++c) dt[c] = dloss * label_share(c) * (log_sum + (exps.largest - x[c]));
  }
};

}  // namespace detail

using detail::chunks_for;
using detail::parallel_for;
using detail::require;
using detail::sum_run;

namespace {

// Returns the shape of the rows.
Shape check_logits(const char* operation, const Shape& shape, bool is_mean) {
  require(!shape.empty() && shape.back() > 0, operation, "expected logits of shape (..., classes), got ", shape);
  require(!is_mean || element_count(shape) > 0, operation,
          "expected at least one label to average over, got logits of shape ", shape);
  return Shape(shape.begin(), shape.end() - 1);
}

void check_labels(const char* operation, const Shape& shape, const IntArray& labels, std::int64_t ignore_index) {
  const Shape rows(shape.begin(), shape.end() - 1);
  require(labels.shape() == rows, operation, "expected labels of shape ", rows, " for logits of shape ", shape,
          ", got ", labels.shape());
  for (std::int64_t label : labels)
    detail::require_in_range(label == ignore_index || (label >= 0 && static_cast<std::size_t>(label) < shape.back()),
                             operation, "expected labels from 0 to ", shape.back() - 1, " or ignore_index ",
                             ignore_index, ", got ", label);
}

// Checks everything but labels or probabilities. Returns the shape of the rows.
template <class T> Shape check(const Tensor<T>& logits, const CrossEntropyOptions<T>& options) {
  const Shape& shape = logits.shape();
  const Shape rows = check_logits("cross_entropy", shape, options.reduction == Reduction::mean);
  require(options.label_smoothing >= 0 && options.label_smoothing <= 1, "cross_entropy",
          "expected label_smoothing in [0, 1], got ", options.label_smoothing);
  require(!options.weight || options.weight->shape() == Shape{shape.back()}, "cross_entropy",
          "expected a weight of shape (", shape.back(), "), got ", [&] { return to_string(options.weight->shape()); });
  return rows;
}

// True without smoothing and class weights.
template <class T> bool is_plain(const CrossEntropyOptions<T>& options) {
  return options.label_smoothing == 0 && !options.weight;
}

constexpr const char* name_of(Reduction reduction) {
  return reduction == Reduction::mean ? "mean" : reduction == Reduction::sum ? "sum" : "none";
}

// The formula for readers, with the classes' shares q and the factor c of the sum over rows. Without smoothing and
// class weights it is the textbook formula.
const char* formula_of_labels(bool each, bool plain) {
  if (!plain)
    return each ? "y = −Σ q ⊙ log softmax(x); dx = (softmax(x) Σ q − q) ⊙ dy"
                : "y = −c Σ q ⊙ log softmax(x); dx = c (softmax(x) Σ q − q) dy";
  return each ? "y = −log softmax(x)[t]; dx = (softmax(x) − one_hot(t)) ⊙ dy"
              : "y = −c Σ log softmax(x)[t]; dx = c (softmax(x) − one_hot(t)) dy";
}

const char* formula_of_probabilities(bool each, bool plain) {
  if (!plain)
    return each ? "y = −Σ q ⊙ log softmax(x), q = (1 − e) w ⊙ t + e w / C; "
                  "dx = (softmax(x) Σ q − q) ⊙ dy; dt = −(1 − e) w ⊙ log softmax(x) ⊙ dy"
                : "y = −c Σ q ⊙ log softmax(x), q = (1 − e) w ⊙ t + e w / C; "
                  "dx = c (softmax(x) Σ q − q) dy; dt = −c (1 − e) w ⊙ log softmax(x) dy";
  return each ? "y = −Σ t ⊙ log softmax(x); dx = (softmax(x) Σ t − t) ⊙ dy; dt = −log softmax(x) ⊙ dy"
              : "y = −c Σ t ⊙ log softmax(x); dx = c (softmax(x) Σ t − t) dy; dt = −c log softmax(x) dy";
}

template <class T> void describe(Arguments<T>& arguments, const CrossEntropyOptions<T>& options) {
  arguments.add("label_smoothing", options.label_smoothing).add("weight", options.weight);
  arguments.add("reduction", name_of(options.reduction));
}

// All losses, or their sum times the factor.
template <class T> Array<T> reduced(Array<T> losses, Reduction reduction, T factor) {
  if (reduction == Reduction::none) return losses;
  return Array<T>(Shape{}, sum_run(losses.data(), losses.size()) * factor);
}

}  // namespace

template <class T>
Tensor<T> cross_entropy(const Tensor<T>& logits, const IntArray& labels,
                        const CrossEntropyOptions<Scalar<T>>& options) {
  check(logits, options);
  check_labels("cross_entropy", logits.shape(), labels, options.ignore_index);
  detail::CrossEntropy<T> rule{logits.shape().back(), static_cast<T>(options.label_smoothing), options.weight};
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

  return record(
      {"cross_entropy", formula_of_labels(each, is_plain(options)), factor},
      reduced(std::move(losses), options.reduction, factor), {logits},
      [=, rule = std::move(rule), x = logits.shared_value(), largest = std::move(largest), sums = std::move(sums),
       labels = labels, ignored = options.ignore_index](const Array<T>& dy, auto& dx) {
        Array<T> gradient(x->shape());
        parallel_for(rows, chunks_for(gradient.size()), [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) {
            const std::int64_t label = labels.data()[i];
            T* g = gradient.data() + i * classes;
            if (label == ignored)
              std::fill_n(g, classes, T(0));
            else
              rule.backward(x->data() + i * classes, static_cast<std::size_t>(label),
                            {largest.data()[i], sums.data()[i]}, dy.data()[each ? i : 0] * factor, g);
          }
        });
        dx[0] += std::move(gradient);
      },
      [&](auto& arguments) {
        arguments.add("labels", labels).add("ignore_index", options.ignore_index);
        describe(arguments, options);
      });
}

template <class T, std::same_as<T> U>
Tensor<T> cross_entropy(const Tensor<T>& logits, const Tensor<U>& probabilities,
                        const CrossEntropyOptions<Scalar<T>>& options) {
  const Shape shape = check(logits, options);
  require(probabilities.shape() == logits.shape(), "cross_entropy",
          "expected probabilities with the shape of the logits, ", logits, ", got ", probabilities);
  require(options.ignore_index < 0, "cross_entropy", "expected no ignore_index with probabilities, got ",
          options.ignore_index, "; it applies to integer labels");
  detail::CrossEntropy<T> rule{logits.shape().back(), static_cast<T>(options.label_smoothing), options.weight};
  const std::size_t classes = rule.classes, rows = logits.size() / classes;

  Array<T> largest(shape), sums(shape), losses(shape);
  parallel_for(rows, chunks_for(logits.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const T* x = logits.value().data() + i * classes;
      const detail::SumExp<T> exps = detail::row_sum_exp(detail::vector_loops<T>(), x, classes);
      largest.data()[i] = exps.largest;
      sums.data()[i] = exps.sum;
      losses.data()[i] = rule.loss(x, probabilities.value().data() + i * classes, exps);
    }
  });
  const bool each = options.reduction == Reduction::none;
  const T factor = options.reduction == Reduction::mean ? 1 / static_cast<T>(rows) : T(1);

  return record(
      {"cross_entropy", formula_of_probabilities(each, is_plain(options)), factor},
      reduced(std::move(losses), options.reduction, factor), {logits, probabilities},
      [=, rule = std::move(rule), x = logits.shared_value(), t = probabilities.shared_value(),
       largest = std::move(largest), sums = std::move(sums)](const Array<T>& dy, auto& dx) {
        // row(i's first element, exps, dloss, out) computes row i of an input's gradient.
        const auto add = [&](Gradient<T> input, auto row) {
          if (!input.needs_grad()) return;
          Array<T> gradient(x->shape());
          parallel_for(rows, chunks_for(gradient.size()), [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
              row(i * classes, detail::SumExp<T>{largest.data()[i], sums.data()[i]}, dy.data()[each ? i : 0] * factor,
                  gradient.data() + i * classes);
          });
          input += std::move(gradient);
        };
        add(dx[0], [&](std::size_t first, detail::SumExp<T> exps, T dloss, T* out) {
          rule.backward(x->data() + first, t->data() + first, exps, dloss, out);
        });
        add(dx[1], [&](std::size_t first, detail::SumExp<T> exps, T dloss, T* out) {
          rule.backward_to_probabilities(x->data() + first, exps, dloss, out);
        });
      },
      [&](auto& arguments) { describe(arguments, options); });
}

namespace detail {

// Binary cross-entropy with the weights w and p of an element and of the label 1. For a logit x and a label t, with
// s(x) = log(1 + exp(x)) computed without overflow or loss of digits:
//   loss = w ((1 - t) s(x) + t p s(-x))
//   dloss/dx = w ((1 - t) sigmoid(x) - t p sigmoid(-x)), dloss/dt = w (p s(-x) - s(x))
template <class T> struct BinaryCrossEntropy {
  Value<T> x, target;
  std::optional<Array<T>> weight, pos_weight;  // of x's shape; none: all 1

  static T softplus(T a) { return (a > 0 ? a : T(0)) + std::log1p(std::exp(-std::abs(a))); }
  static T sigmoid(T a) { return 1 / (1 + std::exp(-a)); }
  static T weight_at(const std::optional<Array<T>>& weights, std::size_t i) {
    return weights ? weights->data()[i] : T(1);
  }

  T loss(std::size_t i) const {
    const T a = x->data()[i], t = target->data()[i];
    return weight_at(weight, i) * ((1 - t) * softplus(a) + t * weight_at(pos_weight, i) * softplus(-a));
  }
  T to_logit(std::size_t i) const {
    const T a = x->data()[i], t = target->data()[i];
    return weight_at(weight, i) * ((1 - t) * sigmoid(a) - t * weight_at(pos_weight, i) * sigmoid(-a));
  }
  T to_target(std::size_t i) const {
    const T a = x->data()[i], p = weight_at(pos_weight, i);
    const T common =
        softplus(-std::abs(a));  // of s(a) and s(-a); kept apart from their difference, which would lose digits
    return weight_at(weight, i) * (p * (a < 0 ? -a : T(0)) - (a > 0 ? a : T(0)) + (p - 1) * common);
  }
};

}  // namespace detail

namespace {

// y_i = f(i)
template <class T, class F> Array<T> each_of(const Shape& shape, F f) {
  Array<T> y(shape);
  parallel_for(y.size(), chunks_for(y.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) y.data()[i] = f(i);
  });
  return y;
}

// The weight broadcast to x's shape, if any.
template <class T>
std::optional<Array<T>> stretched(const std::optional<Array<T>>& weight, const char* name, const Tensor<T>& x) {
  if (!weight) return std::nullopt;
  require(detail::broadcasts_to(weight->shape(), x.shape()), "binary_cross_entropy_with_logits", "expected a ", name,
          " that broadcasts to ", x, ", got ", weight->shape());
  return detail::gather(*weight, {x.shape(), detail::broadcast_strides(weight->shape(), x.shape())});
}

}  // namespace

template <class T>
Tensor<T> binary_cross_entropy_with_logits(const Tensor<T>& x, const Tensor<T>& target,
                                           const BCEWithLogitsOptions<Scalar<T>>& options) {
  constexpr const char* kName = "binary_cross_entropy_with_logits";
  require(x.shape() == target.shape(), kName, "expected a target with the shape of the logits, ", x, ", got ", target);
  require(x.size() > 0 || options.reduction != Reduction::mean, kName,
          "expected at least one element to average over, got shape ", x.shape());
  detail::BinaryCrossEntropy<T> rule{x.shared_value(), target.shared_value(), stretched(options.weight, "weight", x),
                                     stretched(options.pos_weight, "pos_weight", x)};
  const bool each = options.reduction == Reduction::none;
  const T factor = options.reduction == Reduction::mean ? 1 / static_cast<T>(x.size()) : T(1);
  Array<T> losses = each_of<T>(x.shape(), [&](std::size_t i) { return rule.loss(i); });
  // s(x) = log(1 + exp(x)) has the sigmoid σ as its derivative; the weights w and p are 1 by default.
  const char* formula = each ? "y = w ⊙ ((1 − t) ⊙ s(x) + p ⊙ t ⊙ s(−x)); "
                               "dx = w ⊙ ((1 − t) ⊙ σ(x) − p ⊙ t ⊙ σ(−x)) ⊙ dy; dt = w ⊙ (p ⊙ s(−x) − s(x)) ⊙ dy"
                             : "y = c Σ w ⊙ ((1 − t) ⊙ s(x) + p ⊙ t ⊙ s(−x)); "
                               "dx = c w ⊙ ((1 − t) ⊙ σ(x) − p ⊙ t ⊙ σ(−x)) dy; dt = c w ⊙ (p ⊙ s(−x) − s(x)) dy";
  return record(
      {kName, formula, factor}, reduced(std::move(losses), options.reduction, factor), {x, target},
      [rule = std::move(rule), each, factor](const Array<T>& dy, auto& dx) {
        const Shape& shape = rule.x->shape();
        const auto dloss = [&](std::size_t i) { return dy.data()[each ? i : 0] * factor; };
        if (dx[0].needs_grad()) dx[0] += each_of<T>(shape, [&](std::size_t i) { return dloss(i) * rule.to_logit(i); });
        if (dx[1].needs_grad()) dx[1] += each_of<T>(shape, [&](std::size_t i) { return dloss(i) * rule.to_target(i); });
      },
      [&](auto& arguments) {
        arguments.add("weight", options.weight).add("pos_weight", options.pos_weight);
        arguments.add("reduction", name_of(options.reduction));
      });
}

template <class T> Tensor<T> mse_loss(const Tensor<T>& x, const Tensor<T>& target, Reduction reduction) {
  require(x.shape() == target.shape(), "mse_loss", "expected a target of shape ", x.shape(), ", got ", target.shape());
  require(x.size() > 0 || reduction != Reduction::mean, "mse_loss",
          "expected at least one element to average over, got shape ", x.shape());
  Array<T> difference = detail::zip<T>("mse_loss", x.value(), target.value(), std::minus<>());
  const T factor = reduction == Reduction::mean ? 1 / static_cast<T>(x.size()) : T(1);
  Array<T> squares = detail::map<T>(difference, [](T d) { return d * d; });
  const char* formula = reduction == Reduction::none
                            ? "y = (x − t)²; dx = 2 (x − t) ⊙ dy; dt = −2 (x − t) ⊙ dy"
                            : "y = c Σ (x − t)²; dx = 2 · c (x − t) dy; dt = −2 · c (x − t) dy";
  return record(
      {"mse_loss", formula, factor}, reduced(std::move(squares), reduction, factor), {x, target},
      [difference = std::move(difference), factor](const Array<T>& dy, auto& dx) {
        Array<T> gradient =
            detail::zip<T>("mse_loss", difference, dy, [factor](T d, T g) { return 2 * factor * d * g; });
        if (dx[1].needs_grad()) dx[1] += -gradient;
        dx[0] += std::move(gradient);
      },
      [&](auto& arguments) { arguments.add("reduction", name_of(reduction)); });
}

template <class T> double accuracy(const Array<T>& logits, const IntArray& labels, std::int64_t ignore_index) {
  check_logits("accuracy", logits.shape(), /*is_mean=*/true);
  check_labels("accuracy", logits.shape(), labels, ignore_index);
  const IntArray predicted = argmax(logits, -1);
  std::size_t count = 0, right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int64_t label = labels.data()[i];
    if (label == ignore_index) continue;  // a class can be ignored, too
    ++count;
    right += label == predicted.data()[i];
  }
  return static_cast<double>(right) / static_cast<double>(count);
}

#define INSTANTIATE(T)                                                                                         \
  template Tensor<T> cross_entropy(const Tensor<T>&, const IntArray&, const CrossEntropyOptions<Scalar<T>>&);  \
  template Tensor<T> cross_entropy(const Tensor<T>&, const Tensor<T>&, const CrossEntropyOptions<Scalar<T>>&); \
  template Tensor<T> binary_cross_entropy_with_logits(const Tensor<T>&, const Tensor<T>&,                      \
                                                      const BCEWithLogitsOptions<Scalar<T>>&);                 \
  template Tensor<T> mse_loss(const Tensor<T>&, const Tensor<T>&, Reduction);                                  \
  template double accuracy(const Array<T>&, const IntArray&, std::int64_t);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
