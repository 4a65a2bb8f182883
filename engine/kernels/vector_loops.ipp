// The bodies of vector_loops.hpp for one instruction set, an architecture of xsimd. Included by one file per set,
// compiled with its flags. The code emitted here must not be shared with other files, since it may only run on such
// processors: everything is static or a template of Arch, and no shared function of the standard library is called.
#include <xsimd/xsimd.hpp>

#include "../array/random_bits.hpp"
#include "few_rows.ipp"
#include "lanes.ipp"
#include "vector_loops.hpp"

namespace tapegrad::detail {
namespace {

// An operation f on batches of two runs, or of a run and a number.
template <class T, class Arch, class F> struct Binary {
  using Batch = xsimd::batch<T, Arch>;
  static constexpr std::size_t kLanes = Batch::size;

  template <class X, class Y> static void loop(X x, Y y, T* z, std::size_t n) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) F::of(x(i, kLanes), y(i, kLanes)).store_unaligned(z + i);
    if (i < n) Part<T, Arch>::store(F::of(x(i, n - i), y(i, n - i)), z + i, n - i);
  }
  static auto run(const T* x) {
    return [x](std::size_t i, std::size_t n) {
      return n == kLanes ? Batch::load_unaligned(x + i) : Part<T, Arch>::load(x + i, n, T(1));
    };
  }
  static auto number(T x) {
    return [x = Batch(x)](std::size_t, std::size_t) { return x; };
  }

  static void runs(const T* x, const T* y, T* z, std::size_t n) { loop(run(x), run(y), z, n); }
  static void run_number(const T* x, T y, T* z, std::size_t n) { loop(run(x), number(y), z, n); }
  static void number_run(T x, const T* y, T* z, std::size_t n) { loop(number(x), run(y), z, n); }
  static constexpr BinaryLoops<T> table{runs, run_number, number_run};
};

template <class Batch> struct Plus {
  static Batch of(Batch x, Batch y) { return x + y; }
};
template <class Batch> struct Minus {
  static Batch of(Batch x, Batch y) { return x - y; }
};
template <class Batch> struct Times {
  static Batch of(Batch x, Batch y) { return x * y; }
};
template <class Batch> struct Over {
  static Batch of(Batch x, Batch y) { return x / y; }
};

template <class T, class Arch> struct Loops {
  using Batch = xsimd::batch<T, Arch>;
  static constexpr std::size_t kLanes = Batch::size;

  // f(x), constant beyond `limit`, for an f that xsimd computes through an integer. Some instruction sets convert a
  // double to it in C++, where values out of range, infinities and NaN are undefined; floats convert by an instruction.
  template <class F> static Batch within(T limit, const Batch& x, F f) {
    if constexpr (sizeof(T) == 4) return f(x);
    const Batch held = xsimd::max(xsimd::min(x, Batch(limit)), Batch(-limit));  // min(NaN, limit) is the limit
    return xsimd::select(x == x, f(held), x);                                   // NaN stays NaN
  }
  static Batch exp_of(const Batch& x) {  // 0 and inf well before the limits
    return within(T(1000), x, [](const Batch& a) { return xsimd::exp(a); });
  }
  static Batch tanh_of(const Batch& x) {
    return within(T(100), x, [](const Batch& a) { return xsimd::tanh(a); });
  }
  static Batch erfc_of(const Batch& x) {
    return within(T(100), x, [](const Batch& a) { return xsimd::erfc(a); });
  }

  // The last n < kLanes elements, the other lanes padded.
  static Batch load_part(const T* x, std::size_t n, T fill) { return Part<T, Arch>::load(x, n, fill); }
  static void store_part(const Batch& batch, T* y, std::size_t n) { Part<T, Arch>::store(batch, y, n); }

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

  // NaN if either is; the processor's maximum may return the other.
  static T larger(T x, T y) { return x > y || x != x ? x : y; }
  static Batch larger(const Batch& x, const Batch& y) { return xsimd::select(x > y || xsimd::isnan(x), x, y); }

  static T lane_max(const Batch& batch) {
    alignas(64) T lanes[kLanes];
    batch.store_aligned(lanes);
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i) lanes[i] = larger(lanes[i], lanes[i + half]);
    return lanes[0];
  }

  // Four accumulators hide the latency of an addition.
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
    return sum_of_lanes((a + b) + (c + d));
  }

  static T max(const T* x, std::size_t n) {
    const T lowest = -__builtin_huge_val();
    Batch a(lowest), b(lowest);
    std::size_t i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      a = larger(Batch::load_unaligned(x + i), a);
      b = larger(Batch::load_unaligned(x + i + kLanes), b);
    }
    for (; i + kLanes <= n; i += kLanes) a = larger(Batch::load_unaligned(x + i), a);
    if (i < n) b = larger(load_part(x + i, n - i, lowest), b);
    return lane_max(larger(a, b));
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
    return sum_of_lanes(a + b);
  }

  static void scale_and_shift(const T* h, const T* w, const T* b, T* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] = h[i] * w[i] + b[i];
  }
  static void layer_norm_backward(const T* g, const T* h, T* dx, std::size_t n, T r, T mean_g, T mean_gh) {
    const Batch scale(r), minus(mean_g), share(mean_gh);
    map(g, h, dx, n, [=](Batch a, Batch b) { return scale * (a - minus - b * share); });
  }

  static void add_product(const T* x, const T* y, T* z, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) z[i] += x[i] * y[i];
  }

  // random_uniform(key, i) < p, in integers
  static void dropout(const T* x, T* y, std::size_t n, double p, std::uint64_t key, std::uint64_t first) {
    const auto threshold = static_cast<std::uint64_t>(__builtin_ceil(p * 0x1p53));
    const T kept = static_cast<T>(1 / (1 - p));
    for (std::size_t i = 0; i < n; ++i) y[i] = random_bits(key, first + i) >> 11 < threshold ? T(0) : x[i] * kept;
  }

  static T exp_sum(const T* x, T* y, std::size_t n, T shift) {
    Batch total(T(0));
    const Batch minus(shift);
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const Batch e = exp_of(Batch::load_unaligned(x + i) - minus);
      e.store_unaligned(y + i);
      total += e;
    }
    if (i < n) {  // the lanes padded with -inf add exp(-inf) = 0
      const Batch e = exp_of(load_part(x + i, n - i, -__builtin_huge_val()) - minus);
      store_part(e, y + i, n - i);
      total += e;
    }
    return sum_of_lanes(total);
  }

  static T sum_exp(const T* x, std::size_t n, T shift) {
    Batch total(T(0));
    const Batch minus(shift);
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) total += exp_of(Batch::load_unaligned(x + i) - minus);
    if (i < n) total += exp_of(load_part(x + i, n - i, -__builtin_huge_val()) - minus);
    return sum_of_lanes(total);
  }

  static void exp_scaled(const T* x, T* y, std::size_t n, T shift, T factor) {
    const Batch minus(shift), f(factor);
    map(x, y, n, [minus, f](Batch a) { return exp_of(a - minus) * f; });
  }
  static void softmax_backward(const T* y, const T* dy, T* dx, std::size_t n, T dot) {
    const Batch minus(dot);
    map(y, dy, dx, n, [minus](Batch p, Batch d) { return p * (d - minus); });
  }

  static void exp(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return exp_of(a); });
  }
  static void log(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return xsimd::log(a); });
  }
  static void tanh(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return tanh_of(a); });
  }
  // 1 / (1 + exp(-x))
  static Batch sigmoid_of(const Batch& x) { return Batch(T(1)) / (Batch(T(1)) + exp_of(-x)); }
  static void sigmoid(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return sigmoid_of(a); });
  }

  // y = x / (1 + exp(-x)), dx = dy s (1 + x (1 - s)) with s = sigmoid(x)
  static void silu(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return a / (Batch(T(1)) + exp_of(-a)); });
  }
  static void silu_backward(const T* x, const T* dy, T* dx, std::size_t n) {
    map(x, dy, dx, n, [](Batch a, Batch d) {
      const Batch s = sigmoid_of(a), one(T(1));
      return d * s * (one + a * (one - s));
    });
  }

  // With z = beta x: log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)), where exp cannot overflow; dx = dy sigmoid(z).
  static void softplus(const T* x, T* y, std::size_t n, T beta, T threshold) {
    map(x, y, n, [b = Batch(beta), most = Batch(threshold)](Batch a) {
      const Batch z = b * a;
      const Batch sum = xsimd::max(z, Batch(T(0))) + xsimd::log1p(exp_of(-xsimd::abs(z)));
      return xsimd::select(z > most, a, sum / b);
    });
  }
  static void softplus_backward(const T* x, const T* dy, T* dx, std::size_t n, T beta, T threshold) {
    map(x, dy, dx, n, [b = Batch(beta), most = Batch(threshold)](Batch a, Batch d) {
      const Batch z = b * a;
      return xsimd::select(z > most, d, d * sigmoid_of(z));
    });
  }

  static constexpr T kSqrtHalf = T(0.70710678118654752440);
  static constexpr T kInvSqrt2Pi = T(0.39894228040143267794);

  // The normal distribution's Phi(x) = erfc(-x / sqrt 2) / 2
  static Batch Phi(Batch x) { return Batch(T(0.5)) * erfc_of(Batch(-kSqrtHalf) * x); }

  // y = x Phi(x), dx = dy (Phi(x) + x phi(x)) with the density phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
  static void gelu(const T* x, T* y, std::size_t n) {
    map(x, y, n, [](Batch a) { return a * Phi(a); });
  }
  static void gelu_backward(const T* x, const T* dy, T* dx, std::size_t n) {
    map(x, dy, dx, n,
        [](Batch a, Batch d) { return d * (Phi(a) + a * Batch(kInvSqrt2Pi) * exp_of(Batch(T(-0.5)) * a * a)); });
  }

  // y = x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3)
  static constexpr T kScale = 2 * kInvSqrt2Pi, kCubic = T(0.044715);
  static Batch tanh_u(Batch x) { return tanh_of(Batch(kScale) * (x + Batch(kCubic) * x * x * x)); }
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

  template <template <class> class F> static constexpr BinaryLoops<T> binary = Binary<T, Arch, F<Batch>>::table;

  static constexpr VectorLoops<T> table(const char* name) {
    return {.instruction_set = name,
            .plus = binary<Plus>,
            .minus = binary<Minus>,
            .times = binary<Times>,
            .over = binary<Over>,
            .add_product = add_product,
            .sum = sum,
            .max = max,
            .dot = dot,
            .row_by_matrix = FewRowsLoops<T, Arch>::row_by_matrix,
            .few_rows_by_transpose = FewRowsLoops<T, Arch>::few_rows_by_transpose,
            .few_rows_by_bfloat16 = FewRowsLoops<T, Arch, BFloat16>::few_rows_by_transpose,
            .exp_sum = exp_sum,
            .sum_exp = sum_exp,
            .exp_scaled = exp_scaled,
            .softmax_backward = softmax_backward,
            .scale_and_shift = scale_and_shift,
            .layer_norm_backward = layer_norm_backward,
            .dropout = dropout,
            .exp = exp,
            .log = log,
            .tanh = tanh,
            .sigmoid = sigmoid,
            .gelu = gelu,
            .gelu_backward = gelu_backward,
            .gelu_tanh = gelu_tanh,
            .gelu_tanh_backward = gelu_tanh_backward,
            .silu = silu,
            .silu_backward = silu_backward,
            .softplus = softplus,
            .softplus_backward = softplus_backward};
  }
};

}  // namespace
}  // namespace tapegrad::detail
