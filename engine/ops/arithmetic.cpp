#include <cmath>
#include <functional>

#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {

using detail::map, detail::vector_loops, detail::zip;

namespace {

// Describes a scalar operand.
template <class T> auto other(T scalar) {
  return [scalar](auto& arguments) { arguments.add("other", scalar); };
}

// y = a o b with one of the vector loops, under the operands' names.
template <class T>
Array<T> combined(const char* operation, const Tensor<T>& a, const Tensor<T>& b, const detail::BinaryLoops<T>& loops) {
  detail::require_broadcast(operation, a, b);
  return zip<T>(operation, a.value(), b.value(), loops);
}

}  // namespace

// Where the operands broadcast, dy has the larger shape: adding it to dx sums it back.

template <class T> Tensor<T> operator+(const Tensor<T>& a, const Tensor<T>& b) {
  return record({"add", "y = a + b; da = dy; db = dy"}, combined("add", a, b, vector_loops<T>().plus), {a, b},
                [](const auto& dy, auto& dx) {
                  dx[0] += dy;
                  dx[1] += dy;
                });
}

template <class T> Tensor<T> operator+(const Tensor<T>& a, Scalar<T> b) {
  return record(
      {"add", "y = x + c; dx = dy", b}, map<T>(a.value(), [b](T x) { return x + b; }), {a},
      [](const auto& dy, auto& dx) { dx[0] += dy; }, other(b));
}

template <class T> Tensor<T> operator-(const Tensor<T>& a, const Tensor<T>& b) {
  return record({"sub", "y = a − b; da = dy; db = −dy"}, combined("sub", a, b, vector_loops<T>().minus), {a, b},
                [](const auto& dy, auto& dx) {
                  dx[0] += dy;
                  dx[1] += -dy;
                });
}

template <class T> Tensor<T> operator-(Scalar<T> a, const Tensor<T>& b) {
  return record(
      {"sub", "y = c − x; dx = −dy", a}, map<T>(b.value(), [a](T x) { return a - x; }), {b},
      [](const auto& dy, auto& dx) { dx[0] += -dy; }, other(a));
}

template <class T> Tensor<T> operator*(const Tensor<T>& a, const Tensor<T>& b) {
  return record({"mul", "y = a ⊙ b; da = dy ⊙ b; db = dy ⊙ a"}, combined("mul", a, b, vector_loops<T>().times), {a, b},
                [a = a.shared_value(), b = b.shared_value()](const Array<T>& dy, auto& dx) {
                  if (dx[0].needs_grad()) dx[0] += zip<T>("mul", dy, *b, vector_loops<T>().times);
                  if (dx[1].needs_grad()) dx[1] += zip<T>("mul", dy, *a, vector_loops<T>().times);
                });
}

template <class T> Tensor<T> operator*(const Tensor<T>& a, Scalar<T> b) {
  return record(
      {"mul", "y = c x; dx = c dy", b}, map<T>(a.value(), [b](T x) { return x * b; }), {a},
      [b](const auto& dy, auto& dx) { dx[0] += dy * b; }, other(b));
}

template <class T> Tensor<T> operator/(const Tensor<T>& a, const Tensor<T>& b) {
  return record({"div", "y = a / b; da = dy / b; db = −dy ⊙ y / b"}, combined("div", a, b, vector_loops<T>().over),
                {a, b}, [b = b.shared_value()](const Array<T>& dy, auto& dx, const Array<T>& y) {
                  Array<T> da = zip<T>("div", dy, *b, vector_loops<T>().over);
                  if (dx[1].needs_grad()) dx[1] += -da * y;
                  dx[0] += std::move(da);
                });
}

template <class T> Tensor<T> operator/(const Tensor<T>& a, Scalar<T> b) {
  return record(
      {"div", "y = x / c; dx = dy / c", b}, map<T>(a.value(), [b](T x) { return x / b; }), {a},
      [b](const auto& dy, auto& dx) { dx[0] += dy / b; }, other(b));
}

template <class T> Tensor<T> operator/(Scalar<T> a, const Tensor<T>& b) {
  return record(
      {"div", "y = c / x; dx = −dy ⊙ y / x", a}, map<T>(b.value(), [a](T x) { return a / x; }), {b},
      [b = b.shared_value()](const Array<T>& dy, auto& dx, const Array<T>& y) { dx[0] += -dy * y / *b; }, other(a));
}

template <class T> Tensor<T> operator-(const Tensor<T>& a, Scalar<T> b) {
  return record(
      {"sub", "y = x − c; dx = dy", b}, map<T>(a.value(), [b](T x) { return x - b; }), {a},
      [](const auto& dy, auto& dx) { dx[0] += dy; }, other(b));
}

template <class T> Tensor<T> operator-(const Tensor<T>& x) {
  return record({"neg", "y = −x; dx = −dy"}, map<T>(x.value(), std::negate<>()), {x},
                [](const auto& dy, auto& dx) { dx[0] += -dy; });
}

// x^0 is 1 everywhere, so its gradient is 0 even at x = 0.
template <class T> Tensor<T> pow(const Tensor<T>& x, Scalar<T> exponent) {
  return record(
      {"pow", "y = x^c; dx = c x^(c − 1) ⊙ dy", exponent},
      map<T>(x.value(), [exponent](T a) { return std::pow(a, exponent); }), {x},
      [x = x.shared_value(), p = exponent](const Array<T>& dy, auto& dx) {
        dx[0] += zip<T>("pow", dy, *x, [p](T d, T a) { return p == 0 ? T(0) : d * p * std::pow(a, p - 1); });
      },
      [exponent](auto& arguments) { arguments.add("exponent", exponent); });
}

// a^0 is 1 for every a, and 0^b is 0 for every b > 0: there the gradients of a and of b are 0.
template <class T> Tensor<T> pow(const Tensor<T>& x, const Tensor<T>& exponent) {
  detail::require_broadcast("pow", x, exponent);
  Array<T> y = zip<T>("pow", x.value(), exponent.value(), [](T a, T b) { return std::pow(a, b); });
  return record({"pow", "y = a^b; da = b ⊙ a^(b − 1) ⊙ dy; db = y ⊙ log(a) ⊙ dy"}, std::move(y), {x, exponent},
                [a = x.shared_value(), b = exponent.shared_value()](const Array<T>& dy, auto& dx) {
                  const auto add = [&](Gradient<T> gradient, auto derivative) {
                    if (gradient.needs_grad())
                      gradient += zip<T>("pow", dy, zip<T>("pow", *a, *b, derivative), vector_loops<T>().times);
                  };
                  add(dx[0], [](T a, T b) { return b == 0 ? T(0) : b * std::pow(a, b - 1); });
                  add(dx[1], [](T a, T b) { return a == 0 && b >= 0 ? T(0) : std::pow(a, b) * std::log(a); });
                });
}

#define INSTANTIATE(T)                                              \
  template Tensor<T> operator+(const Tensor<T>&, const Tensor<T>&); \
  template Tensor<T> operator+(const Tensor<T>&, Scalar<T>);        \
  template Tensor<T> operator-(const Tensor<T>&, const Tensor<T>&); \
  template Tensor<T> operator-(const Tensor<T>&, Scalar<T>);        \
  template Tensor<T> operator-(Scalar<T>, const Tensor<T>&);        \
  template Tensor<T> operator*(const Tensor<T>&, const Tensor<T>&); \
  template Tensor<T> operator*(const Tensor<T>&, Scalar<T>);        \
  template Tensor<T> operator/(const Tensor<T>&, const Tensor<T>&); \
  template Tensor<T> operator/(const Tensor<T>&, Scalar<T>);        \
  template Tensor<T> operator/(Scalar<T>, const Tensor<T>&);        \
  template Tensor<T> operator-(const Tensor<T>&);                   \
  template Tensor<T> pow(const Tensor<T>&, Scalar<T>);              \
  template Tensor<T> pow(const Tensor<T>&, const Tensor<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
