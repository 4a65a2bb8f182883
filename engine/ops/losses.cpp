#include <algorithm>
#include <cmath>
#include <functional>

#include "../kernels/rows.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace detail {

// Combines losses: y = c Σ losses, or y = losses without reduction.
template <class T> struct Combination {
  Reduction reduction;
  T c;

  Combination(Reduction r, T count) : reduction(r), c(r == Reduction::mean ? 1 / count : T(1)) {}

  bool each() const { return reduction == Reduction::none; }
  const char* name() const { return each() ? "none" : reduction == Reduction::mean ? "mean" : "sum"; }

  Array<T> value(Array<T> losses) const {
    if (each()) return losses;
    return Array<T>(Shape{}, sum_run(losses.data(), losses.size()) * c);
  }

  // The gradient of loss i.
  T dloss(const Array<T>& dy, std::size_t i) const { return dy.data()[each() ? i : 0] * c; }
};

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

  // What a row adds to the mean's divisor: its label's weight, or 1 with probabilities.
  T count_of(std::size_t y) const { return weight_of(y); }
  T count_of(const T*) const { return 1; }

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
    const T total = dloss * (label_share(y) + smooth_sum) / exps.sum;
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

  void backward_to_probabilities(const T* x, auto, SumExp<T> exps, T dloss, T* dt) const {
    const T log_sum = std::log(exps.sum);
    for (std::size_t c = 0; c < classes; ++c) dt[c] = dloss * label_share(c) * (log_sum + (exps.largest - x[c]));
  }
};

}  // namespace detail

using detail::chunks_for, detail::Combination, detail::parallel_for, detail::require, detail::SumExp, detail::sum_run;

namespace {

void check_logits(const char* operation, const Shape& shape, bool is_mean) {
  require(!shape.empty() && shape.back() > 0, operation, "expected logits of shape (..., classes), got ", shape);
  require(!is_mean || element_count(shape) > 0, operation,
          "expected at least one label to average over, got logits of shape ", shape);
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

// Checks everything but labels or probabilities.
template <class T> void check(const Tensor<T>& logits, const CrossEntropyOptions<T>& options) {
  const Shape& shape = logits.shape();
  check_logits("cross_entropy", shape, options.reduction == Reduction::mean);
  require(options.label_smoothing >= 0 && options.label_smoothing <= 1, "cross_entropy",
          "expected label_smoothing in [0, 1], got ", options.label_smoothing);
  require(!options.weight || options.weight->shape() == Shape{shape.back()}, "cross_entropy",
          "expected a weight of shape (", shape.back(), "), got ", [&] { return to_string(options.weight->shape()); });
}

// Records both forms of cross-entropy. target_of(i) is the label or the probabilities of row i, none if it is ignored.
template <class T, class TargetOf, class Describe>
Tensor<T> record_cross_entropy(const char* formula, const Tensor<T>& logits, TargetOf target_of, Inputs<T> inputs,
                               const CrossEntropyOptions<T>& options, const Describe& describe) {
  detail::CrossEntropy<T> rule{logits.shape().back(), static_cast<T>(options.label_smoothing), options.weight};
  const Shape shape(logits.shape().begin(), logits.shape().end() - 1);
  const std::size_t rows = element_count(shape), classes = rule.classes;
  const std::size_t chunks = chunks_for(rows * (classes + 64));  // a row costs as much as 64 more elements
  Array<T> largest(shape), sums(shape), losses(shape, T(0)), counts(shape, T(0));
  parallel_for(rows, chunks, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto target = target_of(i);
      if (!target) continue;
      const T* x = logits.value().data() + i * classes;
      const SumExp<T> exps = detail::row_sum_exp(detail::vector_loops<T>(), x, classes);
      largest.data()[i] = exps.largest;
      sums.data()[i] = exps.sum;
      losses.data()[i] = rule.loss(x, *target, exps);
      counts.data()[i] = rule.count_of(*target);
    }
  });
  const Combination<T> combination(options.reduction, sum_run(counts.data(), rows));

  return record(
      {"cross_entropy", formula, combination.c}, combination.value(std::move(losses)), inputs,
      [=, x = logits.shared_value(), rule = std::move(rule), target_of = std::move(target_of),
       largest = std::move(largest), sums = std::move(sums)](const Array<T>& dy, auto& dx) {
        // row(x, target, exps, dloss, out) computes a row of the input's gradient.
        const auto add = [&](const Gradient<T>& input, auto row) {
          if (!input.needs_grad()) return;
          Array<T> gradient(x->shape());
          parallel_for(rows, chunks, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
              T* out = gradient.data() + i * classes;
              if (const auto target = target_of(i))
                row(x->data() + i * classes, *target, SumExp<T>{largest.data()[i], sums.data()[i]},
                    combination.dloss(dy, i), out);
              else
                std::fill_n(out, classes, T(0));
            }
          });
          input += std::move(gradient);
        };
        add(dx[0], [&](auto... row) { rule.backward(row...); });
        if (dx.size() == 2) add(dx[1], [&](auto... row) { rule.backward_to_probabilities(row...); });
      },
      [&](auto& arguments) {
        describe(arguments);
        arguments.add("label_smoothing", options.label_smoothing).add("weight", options.weight);
        arguments.add("reduction", combination.name());
      });
}

}  // namespace

// The formulas for readers have the classes' shares q and the factor c of the sum over rows. Without smoothing and
// class weights they are the textbook's.

template <class T>
Tensor<T> cross_entropy(const Tensor<T>& logits, const IntArray& labels,
                        const CrossEntropyOptions<Scalar<T>>& options) {
  check(logits, options);
  check_labels("cross_entropy", logits.shape(), labels, options.ignore_index);
  const bool each = options.reduction == Reduction::none, plain = options.label_smoothing == 0 && !options.weight;
  const char* formula = plain ? (each ? "y = −log softmax(x)[t]; dx = (softmax(x) − one_hot(t)) ⊙ dy"
                                      : "y = −c Σ log softmax(x)[t]; dx = c (softmax(x) − one_hot(t)) dy")
                              : (each ? "y = −Σ q ⊙ log softmax(x); dx = (softmax(x) Σ q − q) ⊙ dy"
                                      : "y = −c Σ q ⊙ log softmax(x); dx = c (softmax(x) Σ q − q) dy");
  auto label_of = [labels = labels, ignored = options.ignore_index](std::size_t row) {
    const std::int64_t label = labels.data()[row];
    return label == ignored ? std::nullopt : std::optional(static_cast<std::size_t>(label));
  };
  return record_cross_entropy<T>(formula, logits, std::move(label_of), {logits}, options, [&](auto& arguments) {
    arguments.add("labels", labels).add("ignore_index", options.ignore_index);
  });
}

template <class T, std::same_as<T> U>
Tensor<T> cross_entropy(const Tensor<T>& logits, const Tensor<U>& probabilities,
                        const CrossEntropyOptions<Scalar<T>>& options) {
  check(logits, options);
  require(probabilities.shape() == logits.shape(), "cross_entropy",
          "expected probabilities with the shape of the logits, ", logits, ", got ", probabilities);
  require(options.ignore_index < 0, "cross_entropy", "expected no ignore_index with probabilities, got ",
          options.ignore_index, "; it applies to integer labels");
  const bool each = options.reduction == Reduction::none, plain = options.label_smoothing == 0 && !options.weight;
  const char* formula =
      plain ? (each ? "y = −Σ t ⊙ log softmax(x); dx = (softmax(x) Σ t − t) ⊙ dy; dt = −log softmax(x) ⊙ dy"
                    : "y = −c Σ t ⊙ log softmax(x); dx = c (softmax(x) Σ t − t) dy; dt = −c log softmax(x) dy")
            : (each ? "y = −Σ q ⊙ log softmax(x), q = (1 − e) w ⊙ t + e w / C; "
                      "dx = (softmax(x) Σ q − q) ⊙ dy; dt = −(1 − e) w ⊙ log softmax(x) ⊙ dy"
                    : "y = −c Σ q ⊙ log softmax(x), q = (1 − e) w ⊙ t + e w / C; "
                      "dx = c (softmax(x) Σ q − q) dy; dt = −c (1 − e) w ⊙ log softmax(x) dy");
  auto probabilities_of = [t = probabilities.shared_value(), classes = logits.shape().back()](std::size_t row) {
    return std::optional(t->data() + row * classes);
  };
  return record_cross_entropy<T>(formula, logits, std::move(probabilities_of), {logits, probabilities}, options,
                                 detail::NoArguments());
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
    const T common = softplus(-std::abs(a));  // of s(a) and s(-a), apart from their difference, to keep its digits
    return weight_at(weight, i) * (p * (a < 0 ? -a : T(0)) - (a > 0 ? a : T(0)) + (p - 1) * common);
  }
};

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
  require(broadcasts_to(weight->shape(), x.shape()), "binary_cross_entropy_with_logits", "expected a ", name,
          " that broadcasts to ", x, ", got ", weight->shape());
  return gather(*weight, View{x.shape(), broadcast_strides(weight->shape(), x.shape())});
}

}  // namespace detail

template <class T>
Tensor<T> binary_cross_entropy_with_logits(const Tensor<T>& x, const Tensor<T>& target,
                                           const BCEWithLogitsOptions<Scalar<T>>& options) {
  using detail::each_of, detail::stretched;
  constexpr const char* kName = "binary_cross_entropy_with_logits";
  require(x.shape() == target.shape(), kName, "expected a target with the shape of the logits, ", x, ", got ", target);
  require(x.size() > 0 || options.reduction != Reduction::mean, kName,
          "expected at least one element to average over, got shape ", x.shape());
  detail::BinaryCrossEntropy<T> rule{x.shared_value(), target.shared_value(), stretched(options.weight, "weight", x),
                                     stretched(options.pos_weight, "pos_weight", x)};
  const Combination<T> combination(options.reduction, static_cast<T>(x.size()));
  Array<T> losses = each_of<T>(x.shape(), [&](std::size_t i) { return rule.loss(i); });
  // s(x) = log(1 + exp(x)) has the sigmoid σ as its derivative; the weights w and p are 1 by default.
  const char* formula = combination.each()
                            ? "y = w ⊙ ((1 − t) ⊙ s(x) + p ⊙ t ⊙ s(−x)); "
                              "dx = w ⊙ ((1 − t) ⊙ σ(x) − p ⊙ t ⊙ σ(−x)) ⊙ dy; dt = w ⊙ (p ⊙ s(−x) − s(x)) ⊙ dy"
                            : "y = c Σ w ⊙ ((1 − t) ⊙ s(x) + p ⊙ t ⊙ s(−x)); "
                              "dx = c w ⊙ ((1 − t) ⊙ σ(x) − p ⊙ t ⊙ σ(−x)) dy; dt = c w ⊙ (p ⊙ s(−x) − s(x)) dy";
  return record(
      {kName, formula, combination.c}, combination.value(std::move(losses)), {x, target},
      [rule = std::move(rule), combination](const Array<T>& dy, auto& dx) {
        const Shape& shape = rule.x->shape();
        const auto dloss = [&](std::size_t i) { return combination.dloss(dy, i); };
        if (dx[0].needs_grad()) dx[0] += each_of<T>(shape, [&](auto i) { return dloss(i) * rule.to_logit(i); });
        if (dx[1].needs_grad()) dx[1] += each_of<T>(shape, [&](auto i) { return dloss(i) * rule.to_target(i); });
      },
      [&](auto& arguments) {
        arguments.add("weight", options.weight).add("pos_weight", options.pos_weight);
        arguments.add("reduction", combination.name());
      });
}

template <class T> Tensor<T> mse_loss(const Tensor<T>& x, const Tensor<T>& target, Reduction reduction) {
  require(x.shape() == target.shape(), "mse_loss", "expected a target of shape ", x.shape(), ", got ", target.shape());
  require(x.size() > 0 || reduction != Reduction::mean, "mse_loss",
          "expected at least one element to average over, got shape ", x.shape());
  Array<T> difference = detail::zip<T>("mse_loss", x.value(), target.value(), std::minus<>());
  const Combination<T> combination(reduction, static_cast<T>(x.size()));
  Array<T> squares = detail::map<T>(difference, [](T d) { return d * d; });
  const char* formula = combination.each() ? "y = (x − t)²; dx = 2 (x − t) ⊙ dy; dt = −2 (x − t) ⊙ dy"
                                           : "y = c Σ (x − t)²; dx = 2 · c (x − t) dy; dt = −2 · c (x − t) dy";
  return record(
      {"mse_loss", formula, combination.c}, combination.value(std::move(squares)), {x, target},
      [difference = std::move(difference), c = combination.c](const Array<T>& dy, auto& dx) {
        Array<T> gradient = detail::zip<T>("mse_loss", difference, dy, [c](T d, T g) { return 2 * c * d * g; });
        if (dx[1].needs_grad()) dx[1] += -gradient;
        dx[0] += std::move(gradient);
      },
      [&](auto& arguments) { arguments.add("reduction", combination.name()); });
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
