/// Arithmetic of a tensor with an array or an expression, which is a constant: `p + array`, `2 * array - p`. Without
/// these, xtensor's own operators would take a Parameter for a number, and fail to compile where the result is used.
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

}  // namespace detail

/// An array or expression beside a tensor is a constant; both broadcast.
template <class A, class B>
requires detail::TensorBesideArray<A, B>
auto operator+(A&& a, B&& b) { return detail::beside<B>(a) + detail::beside<A>(b); }
template <class A, class B>
requires detail::TensorBesideArray<A, B>
auto operator-(A&& a, B&& b) { return detail::beside<B>(a) - detail::beside<A>(b); }
template <class A, class B>
requires detail::TensorBesideArray<A, B>
auto operator*(A&& a, B&& b) { return detail::beside<B>(a) * detail::beside<A>(b); }
template <class A, class B>
requires detail::TensorBesideArray<A, B>
auto operator/(A&& a, B&& b) { return detail::beside<B>(a) / detail::beside<A>(b); }

}  // namespace tapegrad
