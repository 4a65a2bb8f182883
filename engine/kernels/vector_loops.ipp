// The bodies of vector_loops.hpp for one instruction set, an architecture of xsimd's. Included by one file for each
// set, compiled with that set's flags. Whatever is emitted here may run on such processors alone: everything is a
// template of Arch or static, and nothing of the standard library that could be shared with other files is called.
#include <xsimd/xsimd.hpp>

#include "vector_loops.hpp"

namespace tapegrad::detail {
namespace {

template <class T, class Arch> struct Loops {
  using Batch = xsimd::batch<T, Arch>;
  static constexpr std::size_t kLanes = Batch::size;

  // The last n < kLanes elements, the other lanes filled up.
  static Batch load_part(const T* x, std::size_t n, T fill) {
    alignas(64) T lanes[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = i < n ? x[i] : fill;
    return Batch::load_aligned(lanes);
  }
  static void store_part(const Batch& batch, T* y, std::size_t n) {
    alignas(64) T lanes[kLanes];
    batch.store_aligned(lanes);
    for (std::size_t i = 0; i < n; ++i) y[i] = lanes[i];
  }

  // y = f(x) throughout
  template <class F> static void map(const T* x, T* y, std::size_t n, F f) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) f(Batch::load_unaligned(x + i)).store_unaligned(y + i);
    if (i < n) store_part(f(load_part(x + i, n - i, T(0))), y + i, n - i);
  }

  // y = f(x, z) throughout
  template <class F> static void map(const T* x, const T* z, T* y, std::size_t n, F f) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      f(Batch::load_unaligned(x + i), Batch::load_unaligned(z + i)).store_unaligned(y + i);
    if (i < n) store_part(f(load_part(x + i, n - i, T(0)), load_part(z + i, n - i, T(0))), y + i, n - i);
  }

  static T lane_max(const Batch& batch) {
    alignas(64) T lanes[kLanes];
    batch.store_aligned(lanes);
    T largest = lanes[0];
    for (T lane : lanes) largest = lane > largest ? lane : largest;
    return largest;
  }

  // Four sums at a time hide the latency of an addition.
  static T sum(const T* x, std::size_t n) {
    Batch a(T(0)), b(T(0)), c(T(0)), d(T(0));
    std::size_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      a += Batch::load_unaligned(x + i);
      b += Batch::load_unaligned(x + i + kLanes);
      c += Batch::load_unaligned(x + i + 2 * kLanes);
      d += Batch::load_unaligned(x + i + 3 * kLanes);
    }
    for (; i + kLanes <= n; i += kLanes) a += Batch::load_unaligned(x + i);
    if (i < n) b += load_part(x + i, n - i, T(0));
    return xsimd::hadd((a + b) + (c + d));
  }

  static T max(const T* x, std::size_t n) {
    const T lowest = -__builtin_huge_val();
    Batch a(lowest), b(lowest);
    std::size_t i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      a = xsimd::max(a, Batch::load_unaligned(x + i));
      b = xsimd::max(b, Batch::load_unaligned(x + i + kLanes));
    }
    for (; i + kLanes <= n; i += kLanes) a = xsimd::max(a, Batch::load_unaligned(x + i));
    if (i < n) b = xsimd::max(b, load_part(x + i, n - i, lowest));
    return lane_max(xsimd::max(a, b));
  }

  static T dot(const T* x, const T* y, std::size_t n) {
    Batch a(T(0)), b(T(0));
    std::size_t i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      a = xsimd::fma(Batch::load_unaligned(x + i), Batch::load_unaligned(y + i), a);
      b = xsimd::fma(Batch::load_unaligned(x + i + kLanes), Batch::load_unaligned(y + i + kLanes), b);
    }
    for (; i + kLanes <= n; i += kLanes) a = xsimd::fma(Batch::load_unaligned(x + i), Batch::load_unaligned(y + i), a);
    if (i < n) b = xsimd::fma(load_part(x + i, n - i, T(0)), load_part(y + i, n - i, T(0)), b);
    return xsimd::hadd(a + b);
  }

  static T exp_sum(const T* x, T* y, std::size_t n, T shift) {
    Batch total(T(0));
    const Batch minus(shift);
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const Batch e = xsimd::exp(Batch::load_unaligned(x + i) - minus);
      e.store_unaligned(y + i);
      total += e;
    }
    if (i < n) {  // the lanes filled up with -inf add exp(-inf) = 0
      const Batch e = xsimd::exp(load_part(x + i, n - i, -__builtin_huge_val()) - minus);
      store_part(e, y + i, n - i);
      total += e;
    }
    return xsimd::hadd(total);
  }

  static T sum_exp(const T* x, std::size_t n, T shift) {
    Batch total(T(0));
    const Batch minus(shift);
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) total += xsimd::exp(Batch::load_unaligned(x + i) - minus);
    if (i < n) total += xsimd::exp(load_part(x + i, n - i, -__builtin_huge_val()) - minus);
    return xsimd::hadd(total);
  }

  static void exp(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return xsimd::exp(a); });
  }
  static void log(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return xsimd::log(a); });
  }
  static void tanh(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return xsimd::tanh(a); });
  }
  // 1 / (1 + exp(-x))
  static void sigmoid(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return Batch(T(1)) / (Batch(T(1)) + xsimd::exp(-a)); });
  }

  static constexpr T kSqrtHalf = T(0.70710678118654752440);
  static constexpr T kInvSqrt2Pi = T(0.39894228040143267794);

  // The normal distribution's Phi(x) = erfc(-x / sqrt 2) / 2
  static Batch Phi(Batch x) { return Batch(T(0.5)) * xsimd::erfc(Batch(-kSqrtHalf) * x); }

  // y = x Phi(x), dx = dy (Phi(x) + x phi(x)) with the density phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
  static void gelu(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return a * Phi(a); });
  }
  static void gelu_backward(const T* x, const T* dy, T* dx, std::size_t n) {
    map(x, dy, dx, n,
        [](Batch a, Batch d) { return d * (Phi(a) + a * Batch(kInvSqrt2Pi) * xsimd::exp(Batch(T(-0.5)) * a * a)); });
  }

  // y = x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3)
  static constexpr T kScale = 2 * kInvSqrt2Pi, kCubic = T(0.044715);
  static Batch tanh_u(Batch x) { return xsimd::tanh(Batch(kScale) * (x + Batch(kCubic) * x * x * x)); }
  static void gelu_tanh(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return Batch(T(0.5)) * a * (Batch(T(1)) + tanh_u(a)); });
  }
  static void gelu_tanh_backward(const T* x, const T* dy, T* dx, std::size_t n) {
    map(x, dy, dx, n, [](Batch a, Batch d) {
      const Batch t = tanh_u(a), one(T(1));
      const Batch du = Batch(kScale) * (one + Batch(3 * kCubic) * a * a);
      return d * Batch(T(0.5)) * (one + t + a * (one - t * t) * du);
    });
  }

  static constexpr VectorLoops<T> table(const char* name) {
    return {name, sum,  max,     dot,  exp_sum,       sum_exp,   exp,
            log,  tanh, sigmoid, gelu, gelu_backward, gelu_tanh, gelu_tanh_backward};
  }
};

}  // namespace
}  // namespace tapegrad::detail
