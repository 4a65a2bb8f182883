/// Draws losses and index operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "program.hpp"

namespace fuzz::steps {

inline tg::Shape without_last(const Input& x) {
  return x.axes() == 0 ? tg::Shape{} : tg::Shape(x.shape.begin(), x.shape.end() - 1);
}

/// Calls f(Values, options) with options of the same type.
template <class F> Step with_cross_entropy_options(Draw& d, std::vector<Input> inputs, std::int64_t ignore, F f) {
  const std::size_t classes = inputs[0].axes() > 0 ? inputs[0].shape.back() : 1;
  const double smoothing = d.chance(2) ? d.number(0, 1) : 0;
  const bool weighted = d.chance(3);
  const tg::Reduction reduction{static_cast<tg::Reduction>(d.below(3))};
  const std::uint64_t key = d.key();
  return Step(std::move(inputs), [=]<class V>(const V& v) {
    using T = NumberOf<V>;
    tg::CrossEntropyOptions<T> options{.ignore_index = ignore, .label_smoothing = smoothing, .reduction = reduction};
    if (weighted) options.weight = Draw::numbers<T>(key, {classes}, 0.5, 2);
    return f(v, options);
  });
}

inline Step cross_entropy_of_labels(Draw& d) {
  const Input logits = d.input();
  const std::size_t classes = logits.axes() > 0 ? logits.shape.back() : 1;
  const tg::IntArray labels = d.ids(without_last(logits), classes);
  return with_cross_entropy_options(d, {logits}, d.chance(2) ? 0 : -100, [=](const auto& v, const auto& options) {
    return tg::cross_entropy(v[0], labels, options);
  });
}

inline Step cross_entropy_of_probabilities(Draw& d) {
  const Input logits = d.input(), probabilities = d.input(logits.shape);
  return with_cross_entropy_options(
      d, {logits, probabilities}, d.chance(32) ? 0 : -100,
      [=](const auto& v, const auto& options) { return tg::cross_entropy(v[0], v[1], options); });
}

inline Step binary_cross_entropy(Draw& d) {
  const Input x = d.input(), target = d.input(x.shape);
  const tg::Shape weights = d.shape_for(x.shape);
  const std::uint64_t key = d.key();
  const std::size_t weighted = d.below(4);
  const tg::Reduction reduction{static_cast<tg::Reduction>(d.below(3))};
  return Step({x, target}, [=]<class V>(const V& v) {
    using T = NumberOf<V>;
    tg::BCEWithLogitsOptions<T> options{.reduction = reduction};
    if (weighted & 1) options.weight = Draw::numbers<T>(key, weights, 0.5, 2);
    if (weighted & 2) options.pos_weight = Draw::numbers<T>(key + 1, weights, 0.5, 2);
    return tg::binary_cross_entropy_with_logits(v[0], v[1], options);
  });
}

inline Step mse_loss(Draw& d) {
  const Input x = d.input(), target = d.input(x.shape);
  const tg::Reduction reduction{static_cast<tg::Reduction>(d.below(3))};
  return Step({x, target}, [=](const auto& v) { return tg::mse_loss(v[0], v[1], reduction); });
}

/// A constant of an array without gradients. f takes no argument.
template <class F> Step constant(F f) {
  return Step({}, [=]<class V>(const V&) { return tg::Tensor<NumberOf<V>>(tg::Array<NumberOf<V>>(f())); });
}

inline Step one_hot(Draw& d) {
  const std::size_t classes = d.extent();
  const tg::IntArray ids = d.ids(d.shape(2), classes);
  Draw::require_quick(ids.size() * classes);
  return constant([=] { return tg::one_hot(ids, classes); });
}

inline Step causal_mask(Draw& d) {
  const std::size_t rows = d.extent(), columns = d.extent();
  return constant([=] { return tg::causal_mask(rows, columns); });
}

inline Step padding_mask(Draw& d) {
  const tg::IntArray ids = d.ids(d.shape(2), 4);
  return constant([=] { return tg::padding_mask(ids, 1); });
}

}  // namespace fuzz::steps
