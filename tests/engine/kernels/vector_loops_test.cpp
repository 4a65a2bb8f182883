/// Compares the vector loops of all instruction sets of this processor with plain loops, on runs of every length.
#include <tapegrad/engine/kernels/vector_loops.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using tapegrad::detail::all_vector_loops;
using tapegrad::detail::VectorLoops;

constexpr std::size_t kMaxLength = 100;  // more than four of the longest vectors, and a partial one

// Random numbers; for_each_length skips the first, so its runs are unaligned.
template <class T> std::vector<T> drawn(std::size_t n, double low, double high, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> x(n);
  for (T& element : x) element = static_cast<T>(std::uniform_real_distribution<double>(low, high)(random));
  return x;
}

template <class T> double tolerance() { return std::is_same_v<T, float> ? 2e-6 : 1e-14; }

template <class T> void check_number(T actual, double expected, double scale = 1) {
  CHECK(std::abs(static_cast<double>(actual) - expected) <= tolerance<T>() * std::max(scale, std::abs(expected)));
}

// body(n, x, y) for runs of every length, x and y in [low, high)
template <class T, class Body> void for_each_length(double low, double high, Body body) {
  for (std::size_t n = 0; n <= kMaxLength; ++n) {
    CAPTURE(n);
    const std::vector<T> x = drawn<T>(n + 1, low, high, 1), y = drawn<T>(n + 1, low, high, 2);
    body(n, x.data() + 1, y.data() + 1);
  }
}

// Checks a loop's output against `expected(x, y)`, also in place, and that it writes nothing past the end.
template <class T, class Loop>
void check_written(double low, double high, Loop loop, const std::function<double(double, double)>& expected) {
  constexpr T kUntouched = T(12345);
  for_each_length<T>(low, high, [&](std::size_t n, const T* x, const T* y) {
    std::vector<T> out(y, y + n);
    out.push_back(kUntouched);
    loop(x, out.data(), n);
    for (std::size_t i = 0; i < n; ++i) check_number(out[i], expected(x[i], y[i]));
    CHECK(out[n] == kUntouched);

    std::vector<T> in_place(x, x + n);
    in_place.push_back(kUntouched);
    loop(in_place.data(), in_place.data(), n);
    for (std::size_t i = 0; i < n; ++i) check_number(in_place[i], expected(x[i], x[i]));
    CHECK(in_place[n] == kUntouched);
  });
}

double normal_cdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); }
double tanh_u(double x) { return std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)); }

template <class T> void check_reductions(const VectorLoops<T>& loops) {
  for_each_length<T>(-3, 3, [&](std::size_t n, const T* x, const T* y) {
    double sum = 0, dot = 0, exps = 0, largest = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < n; ++i) {
      sum += x[i];
      dot += static_cast<double>(x[i]) * y[i];
      exps += std::exp(x[i] - 1.0);
      largest = std::max<double>(largest, x[i]);
    }
    const double scale = static_cast<double>(n);  // for rounding errors that accumulate
    check_number(loops.sum(x, n), sum, scale);
    check_number(loops.dot(x, y, n), dot, scale);
    check_number(loops.exp_sum(x, nullptr, n, T(1)), exps, scale);
    std::vector<T> written(n);
    check_number(loops.exp_sum(x, written.data(), n, T(1)), exps, scale);
    CHECK(loops.max(x, n) == largest);
  });
}

// Loops with more arguments, or with two inputs, which may overwrite the second.
template <class Loop, class... Numbers> auto with(Loop loop, Numbers... numbers) {
  return [=](const auto* x, auto* y, std::size_t n) { loop(x, y, n, numbers...); };
}
template <class Loop, class... Numbers> auto to_second(Loop loop, Numbers... numbers) {
  return [=](const auto* x, auto* y, std::size_t n) { loop(x, y, y, n, numbers...); };
}

template <class T> void check_functions(const VectorLoops<T>& loops) {
  const auto of_x = [](auto f) { return [f](double x, double) { return f(x); }; };
  check_written<T>(-20, 5, loops.exp, of_x([](double x) { return std::exp(x); }));
  check_written<T>(0.01, 20, loops.log, of_x([](double x) { return std::log(x); }));
  check_written<T>(-5, 5, loops.tanh, of_x([](double x) { return std::tanh(x); }));
  check_written<T>(-20, 20, loops.sigmoid, of_x([](double x) { return 1 / (1 + std::exp(-x)); }));
  check_written<T>(-20, 20, loops.silu, of_x([](double x) { return x / (1 + std::exp(-x)); }));
  check_written<T>(-20, 20, with(loops.softplus, T(0.5), T(8)),
                   of_x([](double x) { return x > 16 ? x : std::log1p(std::exp(0.5 * x)) / 0.5; }));
  check_written<T>(-5, 5, loops.gelu, of_x([](double x) { return x * normal_cdf(x); }));
  check_written<T>(-5, 5, loops.gelu_tanh, of_x([](double x) { return x * (1 + tanh_u(x)) / 2; }));
  check_written<T>(
      -5, 5, [&](const T* x, T* y, std::size_t n) { loops.add(x, y, n); }, std::plus<>());
  check_written<T>(
      -5, 5, [&](const T*, T* y, std::size_t n) { loops.scale(y, n, T(0.75)); },
      [](double, double y) { return y * 0.75; });
  check_written<T>(-20, 5, with(loops.exp_sum, T(1)), of_x([](double x) { return std::exp(x - 1); }));
  check_written<T>(-20, 5, with(loops.exp_scaled, T(1), T(0.75)),
                   of_x([](double x) { return std::exp(x - 1) * 0.75; }));
}

// z = x op y for two runs, and for a run and a number on either side.
template <class T>
void check_binary(const tapegrad::detail::BinaryLoops<T>& loops,
                  const std::function<double(double, double)>& expected) {
  check_written<T>(1, 5, to_second(loops.runs), expected);
  check_written<T>(
      1, 5, [&](const T* x, T* y, std::size_t n) { loops.run_number(x, T(0.75), y, n); },
      [&](double x, double) { return expected(x, 0.75); });
  check_written<T>(
      1, 5, [&](const T* x, T* y, std::size_t n) { loops.number_run(T(0.75), x, y, n); },
      [&](double x, double) { return expected(0.75, x); });
}

template <class T> void check_arithmetic(const VectorLoops<T>& loops) {
  check_binary<T>(loops.plus, std::plus<>());
  check_binary<T>(loops.minus, std::minus<>());
  check_binary<T>(loops.times, std::multiplies<>());
  check_binary<T>(loops.divide, std::divides<>());
  check_written<T>(
      -5, 5, [&](const T* x, T* y, std::size_t n) { loops.add_product(x, x, y, n); },
      [](double x, double y) { return x * x + y; });
  check_written<T>(
      -5, 5, [&](const T* x, T* y, std::size_t n) { loops.scale_and_shift(x, y, x, y, n); },
      [](double x, double y) { return x * y + x; });
  check_written<T>(
      -5, 5, [&](const T* x, T* y, std::size_t n) { loops.layer_norm_backward(y, x, y, n, T(0.5), T(0.25), T(0.75)); },
      [](double x, double y) { return 0.5 * (y - 0.25 - x * 0.75); });
}

template <class T> void check_backward(const VectorLoops<T>& loops) {
  check_written<T>(-5, 5, to_second(loops.softmax_backward, T(0.75)),
                   [](double x, double dy) { return x * (dy - 0.75); });
  check_written<T>(-5, 5, to_second(loops.gelu_backward),
                   [](double x, double dy) { return dy * (normal_cdf(x) + x * normal_density(x)); });
  check_written<T>(-20, 20, to_second(loops.silu_backward), [](double x, double dy) {
    const double s = 1 / (1 + std::exp(-x));
    return dy * s * (1 + x * (1 - s));
  });
  check_written<T>(-20, 20, to_second(loops.softplus_backward, T(0.5), T(8)),
                   [](double x, double dy) { return x > 16 ? dy : dy / (1 + std::exp(-0.5 * x)); });
  check_written<T>(-5, 5, to_second(loops.gelu_tanh_backward), [](double x, double dy) {
    const double t = tanh_u(x), du = std::sqrt(2 / std::acos(-1.0)) * (1 + 3 * 0.044715 * x * x);
    return dy * (1 + t + x * (1 - t * t) * du) / 2;
  });
}

template <class T> void check_every_set() {
  for (const VectorLoops<T>* loops : all_vector_loops<T>()) {
    INFO(std::string(loops->instruction_set) << " in " << (std::is_same_v<T, float> ? "float" : "double"));
    check_reductions(*loops);
    check_functions(*loops);
    check_arithmetic(*loops);
    check_backward(*loops);
  }
}

}  // namespace

TEST_CASE("The loops of every instruction set match plain loops, at every length and in place") {
  check_every_set<float>();
  check_every_set<double>();
}

TEST_CASE("Every instruction set of this processor is tested, and the best one is selected") {
  const auto sets = all_vector_loops<float>();
  CHECK(sets.front() == &tapegrad::detail::baseline_loops);
  CHECK(sets.back() == &tapegrad::detail::vector_loops<float>());
#if defined(TAPEGRAD_X86_INSTRUCTION_SETS)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  CHECK(sets.size() == 1u + avx2 + avx512);
#else
  CHECK(sets.size() == 1);
#endif
}

TEST_CASE("Scores of -inf get weight 0 in every instruction set") {
  for (const VectorLoops<float>* loops : all_vector_loops<float>()) {
    INFO(std::string(loops->instruction_set));
    constexpr float inf = std::numeric_limits<float>::infinity();
    std::vector<float> x(37, -inf), y(37, 1.0f);
    x[20] = 2;
    CHECK(loops->max(x.data(), x.size()) == 2);
    CHECK(loops->exp_sum(x.data(), y.data(), x.size(), 2) == 1);
    CHECK(y[20] == 1);
    CHECK(y[19] == 0);
    CHECK(loops->exp_sum(x.data(), nullptr, 20, 2) == 0);
    CHECK(loops->max(x.data(), 0) == -inf);
  }
}

TEST_CASE_TEMPLATE("The maximum of a run is NaN if it contains one, in every instruction set", T, float, double) {
  for (const VectorLoops<T>* loops : all_vector_loops<T>()) {
    INFO(std::string(loops->instruction_set));
    for (std::size_t n = 1; n <= kMaxLength; ++n)
      for (std::size_t place = 0; place < n; ++place) {
        CAPTURE(n);
        CAPTURE(place);
        std::vector<T> x = drawn<T>(n, -3, 3, 1);
        x[place] = std::numeric_limits<T>::quiet_NaN();
        CHECK(std::isnan(loops->max(x.data(), n)));
      }
  }
}

// Arguments with special cases in functions based on polynomials and powers of two.
TEST_CASE_TEMPLATE("exp and functions based on it are right for infinities, NaN and numbers of any size", T, float,
                   double) {
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  constexpr T most = std::numeric_limits<T>::max(), tiny = std::numeric_limits<T>::denorm_min();
  const std::vector<T> x{-inf, -most, T(-1e10), T(-1000), T(-1), -tiny, 0, tiny, 1, T(1000), T(1e10), most, inf, nan};
  for (const VectorLoops<T>* loops : all_vector_loops<T>()) {
    INFO(std::string(loops->instruction_set));
    for (std::size_t repeats : {1, 3}) {  // in a partial vector, and in whole ones
      std::vector<T> all, y, dx;
      for (std::size_t i = 0; i < repeats; ++i) all.insert(all.end(), x.begin(), x.end());
      const auto check = [&](const char* name, auto expected) {
        INFO(name);
        for (std::size_t i = 0; i < all.size(); ++i) {
          const T wanted = static_cast<T>(expected(all[i]));
          CAPTURE(all[i]);
          CAPTURE(y[i]);
          if (std::isnan(wanted))
            CHECK(std::isnan(y[i]));
          else if (std::isinf(wanted))
            CHECK(y[i] == wanted);
          else
            CHECK(y[i] == doctest::Approx(wanted).epsilon(1e-6));
        }
      };
      y = all, loops->exp(all.data(), y.data(), all.size());
      check("exp", [](double a) { return std::exp(a); });
      for (std::size_t i = 0; i < all.size(); ++i) CHECK((y[i] == 0) == (all[i] <= -1000));
      y = all, loops->exp_scaled(all.data(), y.data(), all.size(), T(0), T(2));
      check("exp_scaled", [](double a) { return 2 * std::exp(a); });
      CHECK(std::isnan(loops->exp_sum(all.data(), y.data(), all.size(), T(0))));
      y = all, loops->log(all.data(), y.data(), all.size());
      check("log", [](double a) { return std::log(a); });
      y = all, loops->tanh(all.data(), y.data(), all.size());
      check("tanh", [](double a) { return std::tanh(a); });
      y = all, loops->sigmoid(all.data(), y.data(), all.size());
      check("sigmoid", [](double a) { return 1 / (1 + std::exp(-a)); });
      y = all, loops->silu(all.data(), y.data(), all.size());
      check("silu", [](double a) { return a / (1 + std::exp(-a)); });
      const std::vector<T> ones(all.size(), 1);
      for (const T threshold : {T(20), inf}) {
        y = all, loops->softplus(all.data(), y.data(), all.size(), T(1), threshold);
        check("softplus", [](double a) { return (a > 0 ? a : 0) + std::log1p(std::exp(-std::abs(a))); });
        y = all, loops->softplus_backward(all.data(), ones.data(), y.data(), all.size(), T(1), threshold);
        check("softplus_backward", [](double a) { return 1 / (1 + std::exp(-a)); });
      }
    }
  }
}

TEST_CASE_TEMPLATE("gelu and its gradient are right for large numbers and NaN", T, float, double) {
  const T most = std::sqrt(std::numeric_limits<T>::max()) / 4, nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{-most, T(-1e5), T(-50), 0, 50, T(1e5), most, nan}, ones(x.size(), 1);
  std::vector<T> y(x.size()), dx(x.size());
  for (const VectorLoops<T>* loops : all_vector_loops<T>()) {
    INFO(std::string(loops->instruction_set));
    loops->gelu(x.data(), y.data(), x.size());
    loops->gelu_backward(x.data(), ones.data(), dx.data(), x.size());
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      CAPTURE(x[i]);
      CHECK(y[i] == std::max(x[i], T(0)));
      CHECK(std::abs(dx[i] - (x[i] > 0 ? T(1) : x[i] < 0 ? T(0) : T(0.5))) < 1e-7);
    }
    CHECK(std::isnan(y.back()));
    CHECK(std::isnan(dx.back()));
  }
}
