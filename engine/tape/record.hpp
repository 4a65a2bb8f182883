/// How an operation is made: compute the value, then `record` it with its rule. The library's own operations and a
/// user's are made alike.
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "operation.hpp"
#include "tensor.hpp"

namespace tapegrad {

/// An input of an operation: a tensor by reference.
template <class T> struct Input {
  const Tensor<T>* tensor;                   ///< the input
  Input(const Tensor<T>& t) : tensor(&t) {}  ///< from the tensor that record is given in braces
};

/// Where a rule's kernel writes: `data` holds garbage when beta is 0, and a sum to add to when it is 1, as in BLAS.
template <class T> struct Destination {
  T* data;  ///< as many elements as the input has, in row-major order
  T beta;   ///< 0 or 1
};

/// The gradient of one input, as the rule sees it. Good until the rule returns.
template <class T> class Gradient {
 public:
  /// Whether anybody needs it: a rule may skip work for constants. Adding to one that nobody needs does nothing.
  bool needs_grad() const { return node_ >= 0; }

  /// How many elements the input has. Only for a gradient that is needed.
  std::size_t size() const;

  /// Adds a gradient of the input's shape, or of one that the input was broadcast to: it is summed back.
  void operator+=(const Array<T>& gradient) const;
  void operator+=(Array<T>&& gradient) const;  ///< the same; takes the array over if it can
  /// The same of an expression, which is computed only where somebody needs it.
  template <class E> void operator+=(const xt::xexpression<E>& gradient) const {
    if (needs_grad()) *this += Array<T>(gradient);
  }

  /// For kernels that accumulate in place. Only for a gradient that is needed; ask just before writing, since two
  /// inputs may be the same tensor.
  Destination<T> destination() const;

  /// The gradient's array, zeros at first, to add to here and there. Only for a gradient that is needed.
  Array<T>& accumulator() const;

  /// Where the sum lies, null until something has been added; for the library's own sources.
  std::shared_ptr<Array<T>>& gathered() const;

 private:
  template <class> friend class Gradients;
  Gradient(detail::Recording<T>& recording, std::int32_t node, std::size_t input)
      : recording_(&recording), node_(node), input_(input) {}

  const Shape& shape() const;

  detail::Recording<T>* recording_;
  std::int32_t node_;  // what the input was made by; -1 for a constant
  std::size_t input_;  // its number
};

/// The gradients of all inputs of an operation, numbered as its inputs are.
template <class T> class Gradients {
 public:
  /// For the library's own sources.
  Gradients(detail::Recording<T>& recording, std::int32_t node) : recording_(recording), node_(node) {}
  std::size_t size() const;                         ///< how many inputs the operation has
  Gradient<T> operator[](std::size_t input) const;  ///< that of one input; std::logic_error for none

 private:
  detail::Recording<T>& recording_;
  std::int32_t node_;
};

namespace detail {

/// A rule: given dy, the gradient of an operation's output, it adds to the gradients dx of the inputs.
template <class T> struct Rule {
  virtual ~Rule() = default;
  virtual void operator()(const Array<T>& dy, Gradients<T>& dx) const = 0;
};

template <class T, class F> struct RuleOf final : Rule<T> {
  F function;
  template <class G> explicit RuleOf(G&& g) : function(std::forward<G>(g)) {}
  void operator()(const Array<T>& dy, Gradients<T>& dx) const override { function(dy, dx); }
};

/// The bytes of the arrays that a rule holds: those of the Values that a copy of it shares, and of the arrays that it
/// takes memory for. A rule that cannot be copied counts none.
template <class F> std::size_t saved_bytes(const F& rule) {
  if constexpr (std::is_copy_constructible_v<F>) {
    const SharedBytes shared;
    const std::ptrdiff_t before = array_bytes_in_use;
    [[maybe_unused]] const F copy(rule);
    return shared.bytes + static_cast<std::size_t>(array_bytes_in_use - before);
  } else {
    return 0;
  }
}

/// The nodes of an operation's inputs, -1 for a constant.
using Edges = xt::svector<std::int32_t, 4>;

/// An operation on its way onto the tape.
template <class T> class Entry {
 public:
  /// Throws std::logic_error for an input of another tape, and in anomaly mode std::runtime_error when y is where NaN
  /// or infinity first appears.
  Entry(const Operation& operation, const Tensor<T>& y, std::span<const Input<T>> inputs);

  /// Whether it is recorded: a tape records, and an input has a gradient.
  bool is_recorded() const { return recording_ != nullptr; }
  bool is_profiled() const { return profiled_; }

  /// Puts it on the tape, and y's place there into y.
  void append(Tensor<T>& y, std::shared_ptr<const Rule<T>> rule, std::size_t saved);

 private:
  const Operation& operation_;
  std::span<const Input<T>> inputs_;
  Recording<T>* recording_ = nullptr;
  bool profiled_ = false;
  Edges edges_;
};

template <class T, class F>
Tensor<T> record_value(const Operation& operation, Tensor<T> y, std::span<const Input<T>> inputs, F&& rule) {
  Entry<T> entry(operation, y, inputs);
  if (!entry.is_recorded()) return y;
  const std::size_t saved = entry.is_profiled() ? saved_bytes(rule) : 0;
  entry.append(y, make_pooled<const RuleOf<T, std::decay_t<F>>>(std::forward<F>(rule)), saved);
  return y;
}

}  // namespace detail

/// Makes the tensor with that value and, when a tape records and an input has a gradient, puts the operation on it.
///
/// `operation` is the name that reports and errors use, and the formula that pages show if there is one; both must
/// outlive the tape, as string literals do.
/// `value` is an array, an expression, or a Value<T> that the rule shares.
/// `rule(dy, dx)` gets the gradient of the value and adds to the gradients of the inputs: `dx[0] += dy * ...`. It
/// captures the values that it needs, never a Tensor: x.shared_value() shares an input's value.
///
///     auto cube(const tg::Tensor<double>& x) {
///       return tg::record({"cube", "y = x³; dx = 3 x² ⊙ dy"}, x.value() * x.value() * x.value(), {x},
///                         [x = x.shared_value()](const auto& dy, auto& dx) { dx[0] += 3.0 * *x * *x * dy; });
///     }
///
/// A name alone, `tg::record("cube", ...)`, does as well.
template <class E, class F>
auto record(const Operation& operation, const xt::xexpression<E>& value,
            std::initializer_list<Input<typename E::value_type>> inputs, F&& rule) {
  using T = typename E::value_type;
  return detail::record_value<T>(operation, Tensor<T>(value), inputs, std::forward<F>(rule));
}

/// The same with an array that the tensor takes over.
template <class T, class F>
Tensor<T> record(const Operation& operation, Array<T>&& value,
                 std::initializer_list<Input<std::type_identity_t<T>>> inputs, F&& rule) {
  return detail::record_value<T>(operation, Tensor<T>(std::move(value)), inputs, std::forward<F>(rule));
}

/// The same with a value that the rule shares.
template <class T, class F>
Tensor<T> record(const Operation& operation, Value<T> value,
                 std::initializer_list<Input<std::type_identity_t<T>>> inputs, F&& rule) {
  return detail::record_value<T>(operation, Tensor<T>(std::move(value)), inputs, std::forward<F>(rule));
}

/// The same for operations of any number of inputs.
template <class T, class F>
Tensor<T> record(const Operation& operation, Array<T>&& value, std::span<const Input<T>> inputs, F&& rule) {
  return detail::record_value<T>(operation, Tensor<T>(std::move(value)), inputs, std::forward<F>(rule));
}

}  // namespace tapegrad
