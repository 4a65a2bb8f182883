/// Arithmetic of a tensor with a constant array or expression: `p + array`, `2 * array - p`, `x += array`. Without
/// these operators, xtensor's own would treat a Parameter as a number and fail to compile at the use of the result.
#pragma once

#include <type_traits>

#include "../tape/tensor.hpp"

namespace tapegrad {
namespace detail {

template <class X>
concept IsTensor = requires(const X& x) {
  []<class T>(const Tensor<T>&) {}(x);
};

// True if one of them is an array or expression.
template <class... X>
concept SomeExpression = (xt::is_xexpression<X>::value || ...);

// True for a tensor and an array, and for tensors of two types, which as_tensor refuses. Makes the operators below more
// constrained than xtensor's, so overload resolution prefers them.
template <class A, class B>
concept MixedOperands =
    (IsTensor<A> && IsTensor<B> &&
     !std::is_same_v<typename std::remove_cvref_t<A>::value_type, typename std::remove_cvref_t<B>::value_type>) ||
    (IsTensor<A> && xt::is_xexpression<std::remove_cvref_t<B>>::value) ||
    (xt::is_xexpression<std::remove_cvref_t<A>>::value && IsTensor<B>);

/// A tensor of the other operand's type: itself, or a constant with an expression's values.
template <class Other, class X> decltype(auto) as_tensor(const X& x) {
  if constexpr (IsTensor<X>) {
    static_assert(
        !IsTensor<Other>,
        "tapegrad: the operands are a Tensor<float> and a Tensor<double>. Convert one, without a gradient, as "
        "in x * tg::Tensor<float>(d.value()), or make the model a template on its scalar.");
    return static_cast<const Tensor<typename X::value_type>&>(x);
  } else {
    return Tensor<typename std::remove_cvref_t<Other>::value_type>(x);
  }
}

/// x = result(). The copy throws if x is a Parameter seen as a Tensor, before anything is recorded.
template <class X, class F> X& rebind(X& x, F result) {
  static_assert(
      std::is_same_v<X, Tensor<typename X::value_type>>,
      "tapegrad: compound assignment would turn a parameter into an operation's result. Change its value with "
      "set_value() or mutable_value(), or assign to a copy of type tg::Tensor.");
  x = X(x);
  return x = result();
}

}  // namespace detail

/// a + b for a tensor and a constant array or expression; both broadcast.
template <class A, class B>
requires detail::MixedOperands<A, B>
auto operator+(A&& a, B&& b) { return detail::as_tensor<B>(a) + detail::as_tensor<A>(b); }
/// a - b likewise.
template <class A, class B>
requires detail::MixedOperands<A, B>
auto operator-(A&& a, B&& b) { return detail::as_tensor<B>(a) - detail::as_tensor<A>(b); }
/// a * b likewise.
template <class A, class B>
requires detail::MixedOperands<A, B>
auto operator*(A&& a, B&& b) { return detail::as_tensor<B>(a) * detail::as_tensor<A>(b); }
/// a / b likewise.
template <class A, class B>
requires detail::MixedOperands<A, B>
auto operator/(A&& a, B&& b) { return detail::as_tensor<B>(a) / detail::as_tensor<A>(b); }
/// a^b likewise.
template <class A, class B>
requires detail::MixedOperands<A, B>
auto pow(A&& a, B&& b) { return pow(detail::as_tensor<B>(a), detail::as_tensor<A>(b)); }

}  // namespace tapegrad
