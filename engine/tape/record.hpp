/// The way to write an operation: compute its value, then `record` it with its rule.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "arguments.hpp"
#include "inputs.hpp"
#include "operation.hpp"
#include "rule.hpp"

namespace tapegrad {
namespace detail {

/// The nodes of an operation's inputs, -1 for a constant.
using Edges = xt::svector<std::int32_t, 4>;

/// Finds the nodes of the inputs on the current tape; a parameter's first use appends one. Returns false if nothing is
/// to be recorded: no tape, or constants only. Throws std::logic_error for an input of another tape.
template <class T>
bool find_inputs(const Operation& operation, const Tensor<T>& y, const Inputs<T>& inputs, Edges& edges);

/// Appends an operation with the output y to the current tape.
template <class T>
void append(const Operation& operation, Tensor<T>& y, const Inputs<T>& inputs, Edges&& edges,
            std::shared_ptr<const Rule<T>> rule, const Describe<T>& describe);

template <class V> struct ElementOf { using type = typename V::value_type; };
template <class A> struct ElementOf<std::shared_ptr<A>> { using type = typename A::value_type; };

}  // namespace detail

/// Makes a tensor with the value and, if a tape records and an input requires a gradient, puts the operation on it.
///
/// `operation` is a name or a name with a formula; both must outlive the tape, as string literals do.
/// `value` is an array (moved from if temporary), an expression, or a shared pointer to an array.
/// `rule(dy, dx)` gets the gradient of the value and adds to the gradients of the inputs: `dx[0] += dy * ...`. It
/// captures values, never a Tensor: x.shared_value() shares an input's value. The output is an optional third argument:
/// `rule(dy, dx, y)`.
/// `describe(arguments)` adds the operation's arguments other than tensors: `arguments.add("axis", axis)`. It runs
/// before `record` returns, and only on a tape that profiles or keeps values.
///
///     auto cube(const tg::Tensor<double>& x) {
///       return tg::record({"cube", "y = x³; dx = 3 x² ⊙ dy"}, x.value() * x.value() * x.value(), {x},
///                         [x = x.shared_value()](const auto& dy, auto& dx) { dx[0] += 3.0 * *x * *x * dy; });
///     }
template <class V, class F, class D = detail::NoArguments,
          class T = typename detail::ElementOf<std::remove_cvref_t<V>>::type>
Tensor<T> record(const Operation& operation, V&& value, std::type_identity_t<Inputs<T>> inputs, F&& rule,
                 const D& describe = {}) {
  Tensor<T> y(std::forward<V>(value));
  detail::Edges edges;
  if (!detail::find_inputs<T>(operation, y, inputs, edges)) return y;
  detail::append<T>(
      operation, y, inputs, std::move(edges),
      detail::make_pooled<const detail::RuleOf<T, std::decay_t<F>>>(std::forward<F>(rule), y.shared_value()),
      {&describe, [](const void* d, Arguments<T>& a) { (*static_cast<const D*>(d))(a); }});
  return y;
}

}  // namespace tapegrad
