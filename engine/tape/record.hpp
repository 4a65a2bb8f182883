/// How an operation is made: compute the value, then `record` it with its rule. The library's own operations and a
/// user's are made alike.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

#include "tape.hpp"

namespace tapegrad {

namespace detail {

template <class T, class F> struct RuleOf final : Rule<T> {
  F function;
  template <class G> explicit RuleOf(G&& g) : function(std::forward<G>(g)) {}
  void operator()(const Array<T>& dy, Gradients<T>& dx) const override { function(dy, dx); }
};

template <class T, class F>
Tensor<T> record_value(const char* operation, Tensor<T> y, std::span<const Input<T>> inputs, F&& rule) {
  Tape* tape = Tape::current();
  if (tape == nullptr) return y;
  Recording<T>& recording = tape->recording<T>();
  typename Node<T>::Edges edges;
  bool reaches_parameter = false;
  for (const Input<T>& input : inputs) {
    edges.push_back(recording.edge(operation, *input.tensor));
    reaches_parameter |= edges.back() >= 0;
  }
  if (tape->options().detect_anomaly) recording.check_output(operation, y, inputs, edges);
  if (reaches_parameter) {
    using R = RuleOf<T, std::decay_t<F>>;
    const SavedBytes saved(tape->options().profile);
    auto pooled = make_pooled<const R>(std::forward<F>(rule));
    recording.append(operation, y, std::move(edges), std::move(pooled), saved.count());
  }
  return y;
}

}  // namespace detail

/// Makes the tensor with that value and, when a tape records and an input has a gradient, puts the operation on it.
///
/// `operation` is the name that reports and errors use; it must outlive the tape, as a string literal does.
/// `value` is an array, an expression, or a Value<T> that the rule shares.
/// `rule(dy, dx)` gets the gradient of the value and adds to the gradients of the inputs: `dx[0] += dy * ...`. It
/// captures the values that it needs, never a Tensor: x.shared_value() shares an input's value.
///
///     // y = x^3, dx = 3 x^2 dy
///     auto cube(const tg::Tensor<double>& x) {
///       return tg::record("cube", x.value() * x.value() * x.value(), {x},
///                         [x = x.shared_value()](const auto& dy, auto& dx) { dx[0] += 3.0 * *x * *x * dy; });
///     }
template <class E, class F>
auto record(const char* operation, const xt::xexpression<E>& value,
            std::initializer_list<Input<typename E::value_type>> inputs, F&& rule) {
  using T = typename E::value_type;
  return detail::record_value<T>(operation, Tensor<T>(value), inputs, std::forward<F>(rule));
}

template <class T, class F>
Tensor<T> record(const char* operation, Array<T>&& value, std::initializer_list<Input<std::type_identity_t<T>>> inputs,
                 F&& rule) {
  return detail::record_value<T>(operation, Tensor<T>(std::move(value)), inputs, std::forward<F>(rule));
}

template <class T, class F>
Tensor<T> record(const char* operation, Value<T> value, std::initializer_list<Input<std::type_identity_t<T>>> inputs,
                 F&& rule) {
  return detail::record_value<T>(operation, Tensor<T>(std::move(value)), inputs, std::forward<F>(rule));
}

/// The same for operations of any number of inputs.
template <class T, class F>
Tensor<T> record(const char* operation, Array<T>&& value, std::span<const Input<T>> inputs, F&& rule) {
  return detail::record_value<T>(operation, Tensor<T>(std::move(value)), inputs, std::forward<F>(rule));
}

}  // namespace tapegrad
