#include "derivatives.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "../engine/array/internal/error.hpp"
#include "../engine/ops/ops.hpp"
#include "../engine/tape/tape.hpp"
#include "internal/temporary_changes.hpp"

namespace tapegrad {
namespace {

double max_abs(const Array<double>& x) {
  double largest = 0;
  for (const double number : x) largest = std::max(largest, std::abs(number));
  return largest;
}

// f as the result of an operation, so that it has a backward pass even if f returns a parameter.
template <class T> Tensor<T> recorded(const Tensor<T>& y) { return reshape(y, y.shape()); }

// The gradients of f with respect to the parameters, changed by h v.
std::vector<Array<double>> gradients_at(const std::function<Tensor<double>()>& f, const Parameters<double>& parameters,
                                        const std::vector<Array<double>>& v, double h) {
  detail::ChangedValues changed;
  for (std::size_t k = 0; k < parameters.size(); ++k)
    changed.add(parameters[k].variable(), [&](double* numbers) {
      for (std::size_t i = 0; i < v[k].size(); ++i) numbers[i] += h * v[k].data()[i];
    });
  const Tape tape;
  const Tensor<double> y = recorded(f());
  const detail::GradientsAside<double> aside(Tape::current()->of<double>());
  if (y.requires_grad()) y.backward();
  std::vector<Array<double>> gradients;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const auto& grad = parameters[k].variable()->grad;
    gradients.push_back(y.requires_grad() && grad ? *grad : Array<double>(v[k].shape(), 0.0));
  }
  return gradients;
}

}  // namespace

namespace detail {

template <class T> Array<T> jacobian(const TensorFunction<T>& f, const Array<T>& x) {
  const Tape tape;
  Parameter<T> variable(x);
  const Tensor<T> y = recorded(f(variable));
  Shape shape = y.shape();
  shape.insert(shape.end(), x.shape().begin(), x.shape().end());
  Array<T> result(shape, T(0));
  if (!y.requires_grad()) return result;
  const GradientsAside<T> aside(Tape::current()->template of<T>());
  for (std::size_t i = 0; i < y.size(); ++i) {
    Array<T> seed(y.shape(), T(0));
    seed.data()[i] = T(1);
    variable.zero_grad();
    y.backward(std::move(seed), retain_graph);
    std::ranges::copy(variable.grad(), result.data() + i * x.size());
  }
  return result;
}

template Array<float> jacobian(const TensorFunction<float>& f, const Array<float>& x);
template Array<double> jacobian(const TensorFunction<double>& f, const Array<double>& x);

Array<double> hessian_vector_product(const TensorFunction<double>& f, const Array<double>& x, const Array<double>& v) {
  Parameter<double> variable(x);
  return tapegrad::hessian_vector_product([&] { return f(variable); }, {variable}, {v}).front();
}

}  // namespace detail

std::vector<Array<double>> hessian_vector_product(const std::function<Tensor<double>()>& f,
                                                  const Parameters<double>& parameters,
                                                  const std::vector<Array<double>>& v) {
  constexpr const char* operation = "hessian_vector_product";
  detail::require(v.size() == parameters.size(), operation, "expected an array v for each of ", parameters.size(),
                  " parameters, got ", v.size());
  double largest = 1, longest = 0;
  for (std::size_t k = 0; k < v.size(); ++k) {
    const Array<double>& value = parameters[k]->value();
    detail::require(v[k].shape() == value.shape(), operation, "expected v of shape ", value.shape(), ", got ",
                    v[k].shape());
    largest = std::max(largest, max_abs(value));
    longest = std::max(longest, max_abs(v[k]));
  }
  const double h = longest > 0 ? std::cbrt(std::numeric_limits<double>::epsilon()) * largest / longest : 1;
  std::vector<Array<double>> products = gradients_at(f, parameters, v, h);
  const std::vector<Array<double>> behind = gradients_at(f, parameters, v, -h);
  for (std::size_t k = 0; k < v.size(); ++k)
    for (std::size_t i = 0; i < products[k].size(); ++i)
      products[k].data()[i] = (products[k].data()[i] - behind[k].data()[i]) / (2 * h);
  return products;
}

}  // namespace tapegrad
