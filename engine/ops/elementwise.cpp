#include <cmath>
#include <functional>
#include <limits>

#include "../kernels/strided.hpp"
#include "../tape/record.hpp"
#include "ops.hpp"

namespace tapegrad {
namespace {

using detail::chunks_for, detail::map, detail::parallel_for, detail::require, detail::vector_loops, detail::zip;

// Describes a scalar operand.
template <class T> auto other(T scalar) {
  return [scalar](auto& arguments) { arguments.add("other", scalar); };
}

// y = f(a, b), with errors under the operands' names. f may be one of the vector loops.
template <class T, class F>
Array<T> combined(const char* operation, const Tensor<T>& a, const Tensor<T>& b, const F& f) {
  detail::require_broadcast(operation, a, b);
  return zip<T>(operation, a.value(), b.value(), f);
}

// y = f(x), dx = backward(dy, x): the input is saved.
template <class T, class F, class B, class Describe = detail::NoArguments>
Tensor<T> of_input(const Operation& operation, const Tensor<T>& x, F f, B backward, const Describe& describe = {}) {
  return record(
      operation, map<T>(x.value(), f), {x},
      [name = operation.name, x = x.shared_value(), backward](const Array<T>& dy, auto& dx) {
        dx[0] += zip<T>(name, dy, *x, backward);
      },
      describe);
}

// y = f(x), dx = backward(dy, y): saves the output, for functions with a simpler derivative in y.
template <class T, class F, class B>
Tensor<T> of_output(const Operation& operation, const Tensor<T>& x, F f, B backward) {
  return record(operation, map<T>(x.value(), f), {x},
                [name = operation.name, backward](const Array<T>& dy, auto& dx, const Array<T>& y) {
                  dx[0] += zip<T>(name, dy, y, backward);
                });
}

// y = f(x), dx = dy f'(x) by loops over runs of elements, forward(x, y, n) and backward(x, dy, dx, n).
template <class T, class F, class B, class Describe = detail::NoArguments>
Tensor<T> by_loops(const Operation& operation, const Tensor<T>& x, F forward, B backward,
                   const Describe& describe = {}) {
  return record(
      operation, map<T>(x.value(), forward), {x},
      [name = operation.name, x = x.shared_value(), backward](const Array<T>& dy, auto& dx) {
        const auto run = [&](T* to, std::size_t n, auto at, auto d) { backward(at.data, d.data, to, n); };
        dx[0] += detail::zip_runs<T>(name, run, *x, dy);
      },
      describe);
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
  return record({"div", "y = a / b; da = dy / b; db = −dy ⊙ y / b"}, combined("div", a, b, vector_loops<T>().divide),
                {a, b}, [b = b.shared_value()](const Array<T>& dy, auto& dx, const Array<T>& y) {
                  Array<T> da = zip<T>("div", dy, *b, vector_loops<T>().divide);
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
  Array<T> y = combined("pow", x, exponent, [](T a, T b) { return std::pow(a, b); });
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

template <class T> Tensor<T> exp(const Tensor<T>& x) {
  return of_output({"exp", "y = exp(x); dx = dy ⊙ y"}, x, vector_loops<T>().exp, vector_loops<T>().times);
}

template <class T> Tensor<T> log(const Tensor<T>& x) {
  // Not dy times 1 / x, which overflows for a tiny x.
  return of_input({"log", "y = log(x); dx = dy / x"}, x, vector_loops<T>().log, vector_loops<T>().divide);
}

template <class T> Tensor<T> sqrt(const Tensor<T>& x) {
  return of_output(
      {"sqrt", "y = √x; dx = dy / (2 y)"}, x, [](T a) { return std::sqrt(a); },
      [](T d, T y) { return d * (1 / (2 * y)); });
}

// sign(0) = 0
template <class T> Tensor<T> abs(const Tensor<T>& x) {
  return of_input(
      {"abs", "y = |x|; dx = dy ⊙ sign(x)"}, x, [](T a) { return std::abs(a); },
      [](T d, T a) { return d * (T(a > 0) - T(a < 0)); });
}

template <class T> Tensor<T> tanh(const Tensor<T>& x) {
  return of_output({"tanh", "y = tanh(x); dx = dy ⊙ (1 − y²)"}, x, vector_loops<T>().tanh,
                   [](T d, T y) { return d * (1 - y * y); });
}

template <class T> Tensor<T> sigmoid(const Tensor<T>& x) {
  return of_output({"sigmoid", "y = 1 / (1 + exp(−x)); dx = dy ⊙ y ⊙ (1 − y)"}, x, vector_loops<T>().sigmoid,
                   [](T d, T y) { return d * (y * (1 - y)); });
}

// NaN stays NaN.
template <class T> Tensor<T> relu(const Tensor<T>& x) {
  return of_output(
      {"relu", "y = max(x, 0); dx = dy ⊙ [y > 0]"}, x, [](T a) { return a < 0 ? T(0) : a; },
      [](T d, T y) { return y <= 0 ? T(0) : d; });
}

// NaN stays NaN, and a NaN bound makes all elements NaN.
template <class T> Tensor<T> clamp(const Tensor<T>& x, std::optional<Scalar<T>> min, std::optional<Scalar<T>> max) {
  require(min || max, "clamp", "expected min, max or both, got neither");
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const T low = min.value_or(-kInfinity), high = max.value_or(kInfinity);
  const auto held = [low, high](T a) {
    const T above = a >= low || std::isnan(a) ? a : low;
    return above <= high || std::isnan(above) ? above : high;
  };
  return of_input(
      {"clamp", "y = min(max(x, low), high); dx = dy ⊙ [low ≤ x ≤ high]"}, x, held,
      [low, high](T d, T a) { return a >= low && a <= high ? d : T(0); },
      [&](auto& arguments) { arguments.add("min", min).add("max", max); });
}

// The functions below are computed in kernels/vector_loops.ipp.

// Φ is the distribution function of the normal distribution, φ its density; or both are approximated by tanh.
template <class T> Tensor<T> gelu(const Tensor<T>& x, Gelu formula) {
  const bool exact = formula == Gelu::exact;
  const char* text = exact ? "y = x Φ(x); dx = dy ⊙ (Φ(x) + x φ(x))"
                           : "y = x (1 + t) / 2, t = tanh(√(2/π) (x + 0.044715 x³)); "
                             "dx = dy ⊙ (1 + t + x (1 − t²) √(2/π) (1 + 0.134145 x²)) / 2";
  const auto& loops = vector_loops<T>();
  return by_loops({"gelu", text}, x, exact ? loops.gelu : loops.gelu_tanh,
                  exact ? loops.gelu_backward : loops.gelu_tanh_backward,
                  [exact](auto& arguments) { arguments.add("approximate", exact ? "none" : "tanh"); });
}

// σ is the sigmoid.
template <class T> Tensor<T> silu(const Tensor<T>& x) {
  return by_loops({"silu", "y = x σ(x); dx = dy ⊙ σ(x) (1 + x (1 − σ(x)))"}, x, vector_loops<T>().silu,
                  vector_loops<T>().silu_backward);
}

template <class T> Tensor<T> softplus(const Tensor<T>& x, double beta, double threshold) {
  const T b = static_cast<T>(beta), limit = static_cast<T>(threshold);
  return by_loops(
      {"softplus", "y = log(1 + exp(c x)) / c; dx = dy ⊙ σ(c x)", beta}, x,
      [b, limit](const T* a, T* y, std::size_t n) { vector_loops<T>().softplus(a, y, n, b, limit); },
      [b, limit](const T* a, const T* dy, T* dx, std::size_t n) {
        vector_loops<T>().softplus_backward(a, dy, dx, n, b, limit);
      },
      [&](auto& arguments) { arguments.add("beta", beta).add("threshold", threshold); });
}

template <class T> Tensor<T> masked_fill(const Tensor<T>& x, const BoolArray& mask, const Tensor<T>& value) {
  require(value.dimension() == 0, "masked_fill", "expected a value of shape (), got ", value);
  const T fill = value.item();
  return record(
      {"masked_fill", "y = (1 − m) ⊙ x + m v; dx = (1 − m) ⊙ dy; dv = Σ m ⊙ dy"},
      zip<T>("masked_fill", x.value(), mask, [fill](T a, bool m) { return m ? fill : a; }), {x, value},
      [mask = mask](const Array<T>& dy, auto& dx) {
        if (dx[0].needs_grad()) dx[0] += zip<T>("masked_fill", dy, mask, [](T d, bool m) { return m ? T(0) : d; });
        if (dx[1].needs_grad()) dx[1] += zip<T>("masked_fill", dy, mask, [](T d, bool m) { return m ? d : T(0); });
      },
      [&](auto& arguments) { arguments.add("mask", mask).add("value", fill); });
}

template <class T> Tensor<T> where(const BoolArray& condition, const Tensor<T>& a, const Tensor<T>& b) {
  const auto chosen = [](bool c, T left, T right) { return c ? left : right; };
  auto y = detail::zip_all<T>("where", chosen, condition, a.value(), b.value());
  return record(
      {"where", "y = m ⊙ a + (1 − m) ⊙ b; da = m ⊙ dy; db = (1 − m) ⊙ dy"}, std::move(y), {a, b},
      [c = condition](const Array<T>& dy, auto& dx) {
        if (dx[0].needs_grad()) dx[0] += zip<T>("where", dy, c, [](T d, bool m) { return m ? d : T(0); });
        if (dx[1].needs_grad()) dx[1] += zip<T>("where", dy, c, [](T d, bool m) { return m ? T(0) : d; });
      },
      [&](auto& arguments) { arguments.add("condition", condition); });
}

// PyTorch's gradients: wins(x, y) orders unequal numbers, equal ones share dy, and next to a NaN both get all of it.
template <class T, class Wins>
Tensor<T> winner(const Operation& operation, const Tensor<T>& a, const Tensor<T>& b, Wins wins) {
  const auto choose = [wins](T x, T y) { return wins(x, y) || std::isnan(x) ? x : y; };
  return record(
      operation, combined(operation.name, a, b, choose), {a, b},
      [wins, name = operation.name, a = a.shared_value(), b = b.shared_value()](const Array<T>& dy, auto& dx) {
        const auto share = [wins](T d, T x, T y) { return x == y ? d / 2 : wins(y, x) ? T(0) : d; };
        if (dx[0].needs_grad()) dx[0] += detail::zip_all<T>(name, share, dy, *a, *b);
        if (dx[1].needs_grad()) dx[1] += detail::zip_all<T>(name, share, dy, *b, *a);
      });
}

template <class T> Tensor<T> maximum(const Tensor<T>& a, const Tensor<T>& b) {
  return winner({"maximum", "y = max(a, b); da = ([a > b] + [a = b] / 2) ⊙ dy; db = ([b > a] + [a = b] / 2) ⊙ dy"}, a,
                b, std::greater<>());
}

template <class T> Tensor<T> minimum(const Tensor<T>& a, const Tensor<T>& b) {
  return winner({"minimum", "y = min(a, b); da = ([a < b] + [a = b] / 2) ⊙ dy; db = ([b < a] + [a = b] / 2) ⊙ dy"}, a,
                b, std::less<>());
}

// k is 0 with probability c and 1 otherwise. The backward pass recomputes the random numbers instead of saving them.
template <class T> Tensor<T> dropout(const Tensor<T>& x, double p, bool training, Generator& generator) {
  require(p >= 0 && p < 1, "dropout", "expected a probability in [0, 1), got ", p);
  if (!training || p == 0) return x;
  const auto dropped = [p, key = generator.next_key()](const Array<T>& a) {
    Array<T> out(a.shape());
    parallel_for(a.size(), chunks_for(a.size()), [&](std::size_t begin, std::size_t end) {
      vector_loops<T>().dropout(a.data() + begin, out.data() + begin, end - begin, p, key, begin);
    });
    return out;
  };
  return record(
      {"dropout", "y = x ⊙ k / (1 − c); dx = dy ⊙ k / (1 − c)", p}, dropped(x.value()), {x},
      [dropped](const Array<T>& dy, auto& dx) { dx[0] += dropped(dy); },
      [p](auto& arguments) { arguments.add("p", p); });
}

#define INSTANTIATE(T)                                                                            \
  template Tensor<T> operator+(const Tensor<T>&, const Tensor<T>&);                               \
  template Tensor<T> operator+(const Tensor<T>&, Scalar<T>);                                      \
  template Tensor<T> operator-(const Tensor<T>&, const Tensor<T>&);                               \
  template Tensor<T> operator-(const Tensor<T>&, Scalar<T>);                                      \
  template Tensor<T> operator-(Scalar<T>, const Tensor<T>&);                                      \
  template Tensor<T> operator*(const Tensor<T>&, const Tensor<T>&);                               \
  template Tensor<T> operator*(const Tensor<T>&, Scalar<T>);                                      \
  template Tensor<T> operator/(const Tensor<T>&, const Tensor<T>&);                               \
  template Tensor<T> operator/(const Tensor<T>&, Scalar<T>);                                      \
  template Tensor<T> operator/(Scalar<T>, const Tensor<T>&);                                      \
  template Tensor<T> operator-(const Tensor<T>&);                                                 \
  template Tensor<T> pow(const Tensor<T>&, Scalar<T>);                                            \
  template Tensor<T> pow(const Tensor<T>&, const Tensor<T>&);                                     \
  template Tensor<T> exp(const Tensor<T>&);                                                       \
  template Tensor<T> log(const Tensor<T>&);                                                       \
  template Tensor<T> sqrt(const Tensor<T>&);                                                      \
  template Tensor<T> abs(const Tensor<T>&);                                                       \
  template Tensor<T> tanh(const Tensor<T>&);                                                      \
  template Tensor<T> sigmoid(const Tensor<T>&);                                                   \
  template Tensor<T> relu(const Tensor<T>&);                                                      \
  template Tensor<T> gelu(const Tensor<T>&, Gelu);                                                \
  template Tensor<T> clamp(const Tensor<T>&, std::optional<Scalar<T>>, std::optional<Scalar<T>>); \
  template Tensor<T> silu(const Tensor<T>&);                                                      \
  template Tensor<T> softplus(const Tensor<T>&, double, double);                                  \
  template Tensor<T> masked_fill(const Tensor<T>&, const BoolArray&, const Tensor<T>&);           \
  template Tensor<T> where(const BoolArray&, const Tensor<T>&, const Tensor<T>&);                 \
  template Tensor<T> maximum(const Tensor<T>&, const Tensor<T>&);                                 \
  template Tensor<T> minimum(const Tensor<T>&, const Tensor<T>&);                                 \
  template Tensor<T> dropout(const Tensor<T>&, double, bool, Generator&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
