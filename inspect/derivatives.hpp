/// Derivatives beyond one gradient: Jacobians, and products with a Hessian.
#pragma once

#include <concepts>
#include <functional>
#include <vector>

#include "../engine/tape/parameter_handle.hpp"
#include "../engine/tape/tensor.hpp"

namespace tapegrad {

namespace detail {

template <class T> using TensorFunction = std::function<Tensor<T>(const Tensor<T>&)>;

template <class T> Array<T> jacobian(const TensorFunction<T>& f, const Array<T>& x);

Array<double> hessian_vector_product(const TensorFunction<double>& f, const Array<double>& x, const Array<double>& v);

}  // namespace detail

/// The Jacobian of f at x: J(i..., j...) = df(x)(i...) / dx(j...), of the shape of f(x) followed by x's. Takes one
/// backward pass per element of f(x). Leaves the gradients of other parameters that f reads unchanged.
template <class T, std::invocable<const Tensor<T>&> F> Array<T> jacobian(const F& f, const Array<T>& x) {
  return detail::jacobian<T>(f, x);
}

/// The product of the Hessian of f at x with v, where f(x) is a scalar and v has x's shape, by a central difference of
/// two gradients:
///
///     H v = (f'(x + h v) - f'(x - h v)) / 2h,  h = eps^(1/3) max(1, max|x|) / max|v|,  eps = 2.2e-16
///
/// The error is about h^2 of the third derivative of f' along v plus eps / h of f': below 1e-7 of H v if f, its
/// derivatives and x are of order 1. Leaves gradients unchanged.
template <std::invocable<const Tensor<double>&> F>
Array<double> hessian_vector_product(const F& f, const Array<double>& x, const Array<double>& v) {
  return detail::hessian_vector_product(f, x, v);
}

/// The same for f as a function of a model's parameters, with one v per parameter. A frozen parameter's product is 0.
/// Restores the values and leaves the gradients unchanged.
///
///     const auto Hv = tg::hessian_vector_product([&] { return tg::mse_loss(model(x), y); }, tg::parameters(model), v);
std::vector<Array<double>> hessian_vector_product(const std::function<Tensor<double>()>& f,
                                                  const Parameters<double>& parameters,
                                                  const std::vector<Array<double>>& v);

}  // namespace tapegrad
