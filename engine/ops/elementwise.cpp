#include <cmath>

#include "../array/internal/error.hpp"
#include "../array/internal/parallel.hpp"
#include "../kernels/strided.hpp"
#include "../kernels/vector_loops.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::chunks_for;
using detail::map;
using detail::parallel_for;
using detail::vector_loops;
using detail::zip;

// y = f(x), dx = dy derivative(x): the input is saved.
template <class T, class F, class D> Tensor<T> of_input(const char* operation, const Tensor<T>& x, F f, D derivative) {
  return record(operation, map<T>(x.value(), f), {x},
                [operation, x = x.shared_value(), derivative](const Array<T>& dy, auto& dx) {
                  dx[0] += zip<T>(operation, dy, *x, [derivative](T d, T a) { return d * derivative(a); });
                });
}

// y = f(x), dx = dy derivative(y): the output is saved, where that makes the derivative simpler.
template <class T, class F, class D> Tensor<T> of_output(const char* operation, const Tensor<T>& x, F f, D derivative) {
  Value<T> y = make_value<T>(map<T>(x.value(), f));
  return record(operation, y, {x}, [operation, y, derivative](const Array<T>& dy, auto& dx) {
    dx[0] += zip<T>(operation, dy, *y, [derivative](T d, T b) { return d * derivative(b); });
  });
}

}  // namespace

// y = exp(x), dx = dy y
template <class T> Tensor<T> exp(const Tensor<T>& x) {
  return of_output("exp", x, vector_loops<T>().exp, [](T y) { return y; });
}

// y = log(x), dx = dy / x
template <class T> Tensor<T> log(const Tensor<T>& x) {
  return of_input("log", x, vector_loops<T>().log, [](T a) { return 1 / a; });
}

// y = sqrt(x), dx = dy / (2 y)
template <class T> Tensor<T> sqrt(const Tensor<T>& x) {
  return of_output(
      "sqrt", x, [](T a) { return std::sqrt(a); }, [](T y) { return 1 / (2 * y); });
}

// y = |x|, dx = dy sign(x), with sign(0) = 0
template <class T> Tensor<T> abs(const Tensor<T>& x) {
  return of_input(
      "abs", x, [](T a) { return std::abs(a); }, [](T a) { return T(a > 0) - T(a < 0); });
}

// y = tanh(x), dx = dy (1 - y^2)
template <class T> Tensor<T> tanh(const Tensor<T>& x) {
  return of_output("tanh", x, vector_loops<T>().tanh, [](T y) { return 1 - y * y; });
}

// y = 1 / (1 + exp(-x)), dx = dy y (1 - y)
template <class T> Tensor<T> sigmoid(const Tensor<T>& x) {
  return of_output("sigmoid", x, vector_loops<T>().sigmoid, [](T y) { return y * (1 - y); });
}

// y = max(x, 0), dx = dy [y > 0]; NaN stays NaN
template <class T> Tensor<T> relu(const Tensor<T>& x) {
  return of_output(
      "relu", x, [](T a) { return a < 0 ? T(0) : a; }, [](T y) { return y > 0 ? T(1) : T(0); });
}

// y = x Phi(x) with the normal distribution's Phi, or its approximation by tanh: formulas and derivatives stand in
// kernels/vector_loops.ipp.
template <class T> Tensor<T> gelu(const Tensor<T>& x, Gelu formula) {
  const auto& loops = vector_loops<T>();
  const bool exact = formula == Gelu::exact;
  return record("gelu", map<T>(x.value(), exact ? loops.gelu : loops.gelu_tanh), {x},
                [x = x.shared_value(), backward = exact ? loops.gelu_backward : loops.gelu_tanh_backward](
                    const Array<T>& dy, auto& dx) {
                  Array<T> gradient(dy.shape());
                  parallel_for(dy.size(), chunks_for(dy.size()), [&](std::size_t begin, std::size_t end) {
                    backward(x->data() + begin, dy.data() + begin, gradient.data() + begin, end - begin);
                  });
                  dx[0] += std::move(gradient);
                });
}

template <class T> Tensor<T> masked_fill(const Tensor<T>& x, const BoolArray& mask, Scalar<T> value) {
  const Tensor<T> fill(Array<T>(Shape{}, value));  // an input, so that anomaly mode sees where infinity came from
  return record("masked_fill", zip<T>("masked_fill", x.value(), mask, [value](T a, bool m) { return m ? value : a; }),
                {x, fill}, [mask = Value<bool>(make_value<bool>(mask))](const Array<T>& dy, auto& dx) {
                  dx[0] += zip<T>("masked_fill", dy, *mask, [](T d, bool m) { return m ? T(0) : d; });
                });
}

// y = c ? a : b, da = c ? dy : 0, db = c ? 0 : dy
template <class T> Tensor<T> where(const BoolArray& condition, const Tensor<T>& a, const Tensor<T>& b) {
  const Shape shape =
      detail::broadcast_shapes("where", condition.shape(), detail::broadcast_shapes("where", a.shape(), b.shape()));
  auto y = detail::uninitialized<T>("where", shape);
  T* to = y.data();
  detail::for_each_run<3>(shape,
                          {detail::broadcast_strides(condition.shape(), shape),
                           detail::broadcast_strides(a.shape(), shape), detail::broadcast_strides(b.shape(), shape)},
                          [&](const detail::Offsets<3>& offset, std::size_t count, const detail::Offsets<3>& step) {
                            const bool* c = condition.data() + offset[0];
                            const T* left = a.value().data() + offset[1];
                            const T* right = b.value().data() + offset[2];
                            for (; count > 0; --count, c += step[0], left += step[1], right += step[2])
                              *to++ = *c ? *left : *right;
                          });
  return record("where", std::move(y), {a, b},
                [c = Value<bool>(make_value<bool>(condition))](const Array<T>& dy, auto& dx) {
                  if (dx[0].needs_grad()) dx[0] += zip<T>("where", dy, *c, [](T d, bool m) { return m ? d : T(0); });
                  if (dx[1].needs_grad()) dx[1] += zip<T>("where", dy, *c, [](T d, bool m) { return m ? T(0) : d; });
                });
}

// y_i = x_i k_i / (1 - p), where k_i is 0 with probability p and 1 otherwise. The random numbers are recomputed
// in the sweep instead of being saved.
template <class T> Tensor<T> dropout(const Tensor<T>& x, double p, bool training, Generator& generator) {
  detail::require(p >= 0 && p < 1, "dropout", "expected a probability in [0, 1), given ", p);
  if (!training || p == 0) return x;
  const auto dropped = [p, key = generator.next_key()](const Array<T>& a) {
    Array<T> out(a.shape());
    parallel_for(a.size(), chunks_for(a.size()), [&](std::size_t begin, std::size_t end) {
      vector_loops<T>().dropout(a.data() + begin, out.data() + begin, end - begin, p, key, begin);
    });
    return out;
  };
  return record("dropout", dropped(x.value()), {x}, [dropped](const Array<T>& dy, auto& dx) { dx[0] += dropped(dy); });
}

#define INSTANTIATE(T)                                                            \
  template Tensor<T> exp(const Tensor<T>&);                                       \
  template Tensor<T> log(const Tensor<T>&);                                       \
  template Tensor<T> sqrt(const Tensor<T>&);                                      \
  template Tensor<T> abs(const Tensor<T>&);                                       \
  template Tensor<T> tanh(const Tensor<T>&);                                      \
  template Tensor<T> sigmoid(const Tensor<T>&);                                   \
  template Tensor<T> relu(const Tensor<T>&);                                      \
  template Tensor<T> gelu(const Tensor<T>&, Gelu);                                \
  template Tensor<T> masked_fill(const Tensor<T>&, const BoolArray&, Scalar<T>);  \
  template Tensor<T> where(const BoolArray&, const Tensor<T>&, const Tensor<T>&); \
  template Tensor<T> dropout(const Tensor<T>&, double, bool, Generator&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
