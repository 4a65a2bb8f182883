// The bodies of vector_loops.hpp for one instruction set, an architecture of xsimd. Included by one file per set,
// compiled with its flags. The code emitted here must not be shared with other files, since it may only run on such
// processors: everything is static or a template of Arch, and no shared function of the standard library is called.
#include <xsimd/xsimd.hpp>

#include "../array/random_bits.hpp"
#include "lanes.ipp"
#include "vector_loops.hpp"

namespace tapegrad::detail {
namespace {

template <class T, class Arch> struct Loops {
  using Batch = xsimd::batch<T, Arch>;
  static constexpr std::size_t kLanes = Batch::size;
  static constexpr T kInfinity = __builtin_huge_val();

  static Batch sum(Batch x, Batch y) { return x + y; }
  static Batch difference(Batch x, Batch y) { return x - y; }
  static Batch product(Batch x, Batch y) { return x * y; }
  static Batch quotient(Batch x, Batch y) { return x / y; }

  // f(x), constant beyond `limit`, for an f that xsimd computes through an integer. Some instruction sets convert a
  // double to it in C++, where values out of range, infinities and NaN are undefined; floats convert by an instruction.
  template <class F> static Batch within(T limit, const Batch& x, F f) {
    if constexpr (sizeof(T) == 4) return f(x);
    const Batch held = xsimd::max(xsimd::min(x, Batch(limit)), Batch(-limit));  // min(NaN, limit) is the limit
    return xsimd::select(x == x, f(held), x);                                   // NaN stays NaN
  }
  static Batch exp(Batch x) {  // 0 and inf well before the limits
    return within(T(1000), x, [](const Batch& a) { return xsimd::exp(a); });
  }
  static Batch tanh(Batch x) {
    return within(T(100), x, [](const Batch& a) { return xsimd::tanh(a); });
  }
  static Batch erfc(Batch x) {
    return within(T(100), x, [](const Batch& a) { return xsimd::erfc(a); });
  }
  static Batch log(Batch x) {  // xsimd's is wrong for subnormal doubles
    if constexpr (sizeof(T) < sizeof(double)) return xsimd::log(x);
    const auto is_tiny = x < Batch(T(0x1p-1022));
    const T log_of_scale = T(37.429947750237047);  // 54 log 2
    return xsimd::log(xsimd::select(is_tiny, x * Batch(T(0x1p54)), x)) -
           xsimd::select(is_tiny, Batch(log_of_scale), Batch(T(0)));
  }

  static Batch sigmoid(Batch x) { return Batch(T(1)) / (Batch(T(1)) + exp(-x)); }  // 1 / (1 + exp(-x))

  // y = x / (1 + exp(-x)), dx = dy s (1 + x (1 - s)) with s = sigmoid(x)
  static Batch silu(Batch x) { return x / (Batch(T(1)) + exp(-x)); }
  static Batch silu_backward(Batch x, Batch dy) {
    const Batch s = sigmoid(x), one(T(1));
    return dy * s * (one + x * (one - s));
  }

  // With z = beta x: log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)), where exp cannot overflow; dx = dy sigmoid(z).
  static Batch softplus(Batch x, Batch beta, Batch threshold) {
    const Batch z = beta * x;
    const Batch log_sum = xsimd::max(z, Batch(T(0))) + xsimd::log1p(exp(-xsimd::abs(z)));
    return xsimd::select(z > threshold, x, log_sum / beta);
  }
  static Batch softplus_backward(Batch x, Batch dy, Batch beta, Batch threshold) {
    const Batch z = beta * x;
    return xsimd::select(z > threshold, dy, dy * sigmoid(z));
  }

  static constexpr T kSqrtHalf = T(0.70710678118654752440);
  static constexpr T kInvSqrt2Pi = T(0.39894228040143267794);

  // The normal distribution's Phi(x) = erfc(-x / sqrt 2) / 2
  static Batch Phi(Batch x) { return Batch(T(0.5)) * erfc(Batch(-kSqrtHalf) * x); }

  // y = x Phi(x), dx = dy (Phi(x) + x phi(x)) with the density phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
  static Batch gelu(Batch x) { return x * Phi(x); }
  static Batch gelu_backward(Batch x, Batch dy) {
    return dy * (Phi(x) + x * Batch(kInvSqrt2Pi) * exp(Batch(T(-0.5)) * x * x));
  }

  // y = x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3)
  static constexpr T kScale = 2 * kInvSqrt2Pi, kCubic = T(0.044715);
  static Batch tanh_u(Batch x) { return tanh(Batch(kScale) * (x + Batch(kCubic) * x * x * x)); }
  static Batch gelu_tanh(Batch x) { return Batch(T(0.5)) * x * (Batch(T(1)) + tanh_u(x)); }
  static Batch gelu_tanh_backward(Batch x, Batch dy) {
    const Batch t = tanh_u(x), one(T(1));
    const Batch du = Batch(kScale) * (one + Batch(3 * kCubic) * x * x);
    return dy * Batch(T(0.5)) * (one + t + x * (one - t * t) * du);
  }

  static Batch exp_scaled(Batch x, Batch shift, Batch factor) { return exp(x - shift) * factor; }
  static Batch softmax_backward(Batch y, Batch dy, Batch dot) { return y * (dy - dot); }
  static Batch layer_norm_backward(Batch g, Batch h, Batch r, Batch mean_g, Batch mean_gh) {
    return r * (g - mean_g - h * mean_gh);
  }

  // An operand: elements of a run, or a number. Missing elements are 1, with a finite result in all functions.
  static Batch at(const T* x, std::size_t i, std::size_t n) { return load<Batch>(x + i, n, T(1)); }
  static Batch at(const Batch& x, std::size_t, std::size_t) { return x; }

  // y = f(x...) throughout
  template <auto f, class... X> static void map(T* y, std::size_t n, X... x) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) f(at(x, i, kLanes)...).store_unaligned(y + i);
    if (i < n) store_part(f(at(x, i, n - i)...), y + i, n - i);
  }

  // Loops of a function of batches, over one run or two. Further arguments are numbers.
  template <auto f, class... Numbers> static void unary(const T* x, T* y, std::size_t n, Numbers... numbers) {
    map<f>(y, n, x, Batch(numbers)...);
  }
  template <auto f, class... Numbers>
  static void binary(const T* x, const T* y, T* z, std::size_t n, Numbers... numbers) {
    map<f>(z, n, x, y, Batch(numbers)...);
  }
  template <auto f> static constexpr BinaryLoops<T> mixed() {
    return {binary<f>, [](const T* x, T y, T* z, std::size_t n) { map<f>(z, n, x, Batch(y)); },
            [](T x, const T* y, T* z, std::size_t n) { map<f>(z, n, Batch(x), y); }};
  }

  static T larger(T x, T y) { return x > y || x != x ? x : y; }  // NaN if either is, unlike the processor's
  static Batch larger(const Batch& x, const Batch& y) { return xsimd::select(x > y || xsimd::isnan(x), x, y); }

  static T lane_max(const Batch& batch) {
    alignas(64) T lanes[kLanes];
    batch.store_aligned(lanes);
    for (std::size_t half = kLanes / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i) lanes[i] = larger(lanes[i], lanes[i + half]);
    return lanes[0];
  }

  static T sum_of_run(const T* x, std::size_t n) {
    const Batch zero(T(0));
    Batch sums[]{zero, zero, zero, zero};
    accumulate<kLanes>(sums, n, [x](Batch& s, std::size_t i, std::size_t lanes) { s += load<Batch>(x + i, lanes); });
    return sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }

  static T max(const T* x, std::size_t n) {
    Batch largest[]{Batch(-kInfinity), Batch(-kInfinity)};
    accumulate<kLanes>(largest, n, [x](Batch& m, std::size_t i, std::size_t lanes) {
      m = larger(load<Batch>(x + i, lanes, -kInfinity), m);
    });
    return lane_max(larger(largest[0], largest[1]));
  }

  static T dot(const T* x, const T* y, std::size_t n) {
    Batch sums[]{Batch(T(0)), Batch(T(0))};
    accumulate<kLanes>(sums, n, [x, y](Batch& s, std::size_t i, std::size_t lanes) {
      s = xsimd::fma(load<Batch>(x + i, lanes), load<Batch>(y + i, lanes), s);
    });
    return sum_of_lanes(sums[0] + sums[1]);
  }

  // Missing elements are -inf and add exp(-inf) = 0. Without y, only sums.
  static T exp_sum(const T* x, T* y, std::size_t n, T shift) {
    Batch sums[]{Batch(T(0))};
    accumulate<kLanes>(sums, n, [x, y, minus = Batch(shift)](Batch& s, std::size_t i, std::size_t lanes) {
      const Batch e = exp(load<Batch>(x + i, lanes, -kInfinity) - minus);
      if (y != nullptr) store(e, y + i, lanes);
      s += e;
    });
    return sum_of_lanes(sums[0]);
  }

  static void add_product(const T* x, const T* y, T* z, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) z[i] += x[i] * y[i];
  }
  static void scale_and_shift(const T* h, const T* w, const T* b, T* y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] = h[i] * w[i] + b[i];
  }

  // random_uniform(key, i) < p, in integers
  static void dropout(const T* x, T* y, std::size_t n, double p, std::uint64_t key, std::uint64_t first) {
    const auto threshold = static_cast<std::uint64_t>(__builtin_ceil(p * 0x1p53));
    const T kept = static_cast<T>(1 / (1 - p));
    for (std::size_t i = 0; i < n; ++i) y[i] = random_bits(key, first + i) >> 11 < threshold ? T(0) : x[i] * kept;
  }

  // Products with a few rows on the left read the rows of b one after the other, the order in which memory is fastest:
  // four side by side take twice as long. The order of each sum is fixed, independent of the division among threads.

  // Writes alpha product + beta c to n elements of c.
  template <class B> static void store_product(const FewRows<T, B>& p, const Batch& product, T* c, std::size_t n) {
    const Batch scaled = Batch(p.alpha) * product;
    store(p.beta == 0 ? scaled : xsimd::fma(Batch(p.beta), load<Batch>(c, n), scaled), c, n);
  }

  // Multiplies R rows of a from r on with n <= kLanes rows of b from `first` on. Reduces the lanes of all n together.
  template <std::size_t R, class B>
  static void dots(const FewRows<T, B>& p, std::size_t r, std::size_t first, std::size_t n) {
    const T* const a = p.a + r * p.a_stride;
    Batch sums[R][kLanes];
    for (std::size_t i = 0; i < R; ++i)
      for (std::size_t c = n; c < kLanes; ++c) sums[i][c] = Batch(T(0));
    for (std::size_t c = 0; c < n; ++c) {
      const B* const b = p.b + (first + c) * p.b_stride;
      Batch parts[2][R];
      for (std::size_t i = 0; i < R; ++i) parts[0][i] = parts[1][i] = Batch(T(0));
      accumulate<kLanes>(parts, p.inner, [&](Batch(&part)[R], std::size_t k, std::size_t lanes) {
        const Batch y = load<Batch>(b + k, lanes);
        for (std::size_t i = 0; i < R; ++i)
          part[i] = xsimd::fma(load<Batch>(a + i * p.a_stride + k, lanes), y, part[i]);
      });
      for (std::size_t i = 0; i < R; ++i) sums[i][c] = parts[0][i] + parts[1][i];
    }
    for (std::size_t i = 0; i < R; ++i) {
      T* const c = p.c + (r + i) * p.c_stride + first;
      store_product(p, sums_of_lanes(sums[i]), c, n);
    }
  }

  template <class B> static void few_rows_by_transpose(const FewRows<T, B>& p) {
    for (std::size_t c = 0; c < p.columns; c += kLanes) {
      const std::size_t n = p.columns - c < kLanes ? p.columns - c : kLanes;
      std::size_t r = 0;
      for (; r + 4 <= p.rows; r += 4) dots<4>(p, r, c, n);
      for (; r + 2 <= p.rows; r += 2) dots<2>(p, r, c, n);
      if (r < p.rows) dots<1>(p, r, c, n);
    }
  }

  // A row of N whole vectors and a partial or whole one, with sums in registers.
  template <std::size_t N> static void narrow_row(const FewRows<T>& p) {
    if constexpr (N > 0)
      if (p.columns <= N * kLanes) return narrow_row<N - 1>(p);
    const T* b = p.b;
    const std::size_t rest = p.columns - N * kLanes;
    const auto initial = [&](std::size_t j, std::size_t n) {
      return p.beta == 0 ? Batch(T(0)) : Batch(p.beta) * load<Batch>(p.c + j * kLanes, n);
    };
    Batch sums[N + 1], last = initial(N, rest);
    for (std::size_t j = 0; j < N; ++j) sums[j] = initial(j, kLanes);
    for (std::size_t k = 0; k < p.inner; ++k, b += p.b_stride) {
      const Batch factor(p.alpha * p.a[k]);
      for (std::size_t j = 0; j < N; ++j) sums[j] = xsimd::fma(factor, Batch::load_unaligned(b + j * kLanes), sums[j]);
      last = xsimd::fma(factor, load<Batch>(b + N * kLanes, rest), last);
    }
    for (std::size_t j = 0; j < N; ++j) store(sums[j], p.c + j * kLanes, kLanes);
    store(last, p.c + N * kLanes, rest);
  }

  // Adds row k of b, times the element k of a, to columns first, ..., last - 1 of c.
  static void add_row(const FewRows<T>& p, std::size_t k, std::size_t first, std::size_t last) {
    const T* const b = p.b + k * p.b_stride;
    const Batch factor(p.alpha * p.a[k]);
    const auto add = [&](std::size_t j, std::size_t n) {
      store(xsimd::fma(factor, load<Batch>(b + j, n), load<Batch>(p.c + j, n)), p.c + j, n);
    };
    std::size_t j = first;
    for (; j + kLanes <= last; j += kLanes) add(j, kLanes);
    if (j < last) add(j, last - j);
  }

  static void row_by_matrix(const FewRows<T>& p) {
    constexpr std::size_t kNarrow = 8;                 // vectors
    constexpr std::size_t kBlock = 16384 / sizeof(T);  // columns; their sums fit in the first-level cache
    if (p.columns <= kNarrow * kLanes) return narrow_row<kNarrow - 1>(p);
    for (std::size_t j = 0; j < p.columns; ++j) p.c[j] = p.beta == 0 ? T(0) : p.beta * p.c[j];
    for (std::size_t first = 0; first < p.columns; first += kBlock)
      for (std::size_t k = 0; k < p.inner; ++k)
        add_row(p, k, first, p.columns - first < kBlock ? p.columns : first + kBlock);
  }

  static constexpr VectorLoops<T> table(const char* name) {
    return {.instruction_set = name,
            .plus = mixed<sum>(),
            .minus = mixed<difference>(),
            .times = mixed<product>(),
            .divide = mixed<quotient>(),
            .add_product = add_product,
            .sum = sum_of_run,
            .max = max,
            .dot = dot,
            .row_by_matrix = row_by_matrix,
            .few_rows_by_transpose = few_rows_by_transpose<T>,
            .few_rows_by_bfloat16 = few_rows_by_transpose<BFloat16>,
            .exp_sum = exp_sum,
            .exp_scaled = unary<exp_scaled>,
            .softmax_backward = binary<softmax_backward>,
            .scale_and_shift = scale_and_shift,
            .layer_norm_backward = binary<layer_norm_backward>,
            .dropout = dropout,
            .exp = unary<exp>,
            .log = unary<log>,
            .tanh = unary<tanh>,
            .sigmoid = unary<sigmoid>,
            .gelu = unary<gelu>,
            .gelu_tanh = unary<gelu_tanh>,
            .silu = unary<silu>,
            .gelu_backward = binary<gelu_backward>,
            .gelu_tanh_backward = binary<gelu_tanh_backward>,
            .silu_backward = binary<silu_backward>,
            .softplus = unary<softplus>,
            .softplus_backward = binary<softplus_backward>};
  }
};

template <class Arch> constexpr LoopsOfSet loops_of_set(const char* name) {
  return {Loops<float, Arch>::table(name), Loops<double, Arch>::table(name)};
}

}  // namespace
}  // namespace tapegrad::detail
