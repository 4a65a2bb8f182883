/// Arithmetic of a tensor with an array or an expression, which is a constant: `p + array`, `2 * array - p`. Without
/// these, xtensor's own operators would take a Parameter for a number, and fail to compile where the result is used.
/// And what compound assignment, `x += array`, does with its left side.
#pragma once

#include <type_traits>

#include "../tape/tensor.hpp"

namespace tapegrad {
namespace detail {

template <class X>
concept IsTensor = requires(const X& x) {
  []<class T>(const Tensor<T>&) {}(x);
};

// The constraint makes the operators below better matches than xtensor's, which take any two types.
template <class A, class B>
concept TensorBesideArray = (IsTensor<A> && xt::is_xexpression<std::remove_cvref_t<B>>::value) ||
                            (xt::is_xexpression<std::remove_cvref_t<A>>::value && IsTensor<B>);

/// A tensor of the other operand's type: itself, or a constant with an expression's values.
template <class Other, class X> decltype(auto) beside(const X& x) {
  if constexpr (IsTensor<X>)
    return static_cast<const Tensor<typename X::value_type>&>(x);
  else
    return Tensor<typename std::remove_cvref_t<Other>::value_type>(x);
}

/// x = result(). The copy throws where a parameter hides behind a Tensor&, before anything is recorded.
template <class X, class F> X& rebind(X& x, F result) {
  static_assert(std::is_same_v<X, Tensor<typename X::value_type>>,
                "tapegrad: compound assignment would make a parameter a handle on a result. Its value is changed by "
                "set_value() and mutable_value(); a tg::Tensor that is a copy of it can be assigned to.");
  x = X(x);
  return x = result();
}

}  // namespace detail

/// The same of an array or expression beside a tensor: it is a constant, and both broadcast.
template <class A, class B>
requires detail::TensorBesideArray<A, B>
auto operator+(A&& a, B&& b) { return detail::beside<B>(a) + detail::beside<A>(b); }
/// The same of an array or expression beside a tensor.
template <class A, class B>
requires detail::TensorBesideArray<A, B>
auto operator-(A&& a, B&& b) { return detail::beside<B>(a) - detail::beside<A>(b); }
/// The same of an array or expression beside a tensor.
template <class A, class B>
requires detail::TensorBesideArray<A, B>
auto operator*(A&& a, B&& b) { return detail::beside<B>(a) * detail::beside<A>(b); }
/// The same of an array or expression beside a tensor.
template <class A, class B>
requires detail::TensorBesideArray<A, B>
auto operator/(A&& a, B&& b) { return detail::beside<B>(a) / detail::beside<A>(b); }
/// The same of an array or expression beside a tensor.
template <class A, class B>
requires detail::TensorBesideArray<A, B>
auto pow(A&& a, B&& b) { return pow(detail::beside<B>(a), detail::beside<A>(b)); }

}  // namespace tapegrad
