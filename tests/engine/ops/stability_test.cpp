/// Values and gradients where sums have several blocks, and of 2^18 elements, where float is easily inaccurate. The
/// expected results are computed here by definition in long double, those over 2^18 elements by the same operation in
/// double.
#include <numeric>
#include <type_traits>

#include "../../operations/run.hpp"
#include "close.hpp"
#include "poison.hpp"
#include "threads.hpp"

namespace tg = tapegrad;

namespace {

using operations::draw, operations::numbers;
using Real = long double;
using Row = std::vector<Real>;

Real dot(const Row& a, const Row& b) { return std::inner_product(a.begin(), a.end(), b.begin(), Real(0)); }

Real log_sum_exp(const Row& x) {
  const Real largest = *std::max_element(x.begin(), x.end());
  Real sum = 0;
  for (const Real a : x) sum += std::exp(a - largest);
  return largest + std::log(sum);
}

Row softmax(Row x) {
  const Real total = log_sum_exp(x);
  for (Real& a : x) a = std::exp(a - total);
  return x;
}

template <class T> Row row_of(const tg::Array<T>& a) { return Row(a.begin(), a.end()); }

using ByLoops = Row (*)(const std::vector<Row>&);

// Every operation that reduces an axis, on one row of each input, with its definition. Operations on more rows or along
// other axes repeat these: see repeated_operations_test.cpp.
struct LongRows {
  operations::Table table;
  std::vector<ByLoops> by_loops;

  // Returns a place for the definition.
  template <class F> ByLoops& add(const char* operation, const char* name, std::size_t inputs, F f) {
    constexpr std::size_t length = 2 * 1024 + 5;  // sums have blocks of 1024
    table.add(operation, name, std::vector(inputs, draw({length}, 0.1, 1)), f);
    return by_loops.emplace_back();
  }
};

template <class F> Row each(const Row& x, F f) {
  Row y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(f(i));
  return y;
}

Real sum_of(const Row& x) { return std::accumulate(x.begin(), x.end(), Real(0)); }
Real mean_of(const Row& x) { return sum_of(x) / static_cast<Real>(x.size()); }
Row squares_about(const Row& x, Real center) {
  return each(x, [&](std::size_t i) { return (x[i] - center) * (x[i] - center); });
}
Row log_softmax(const Row& x) {
  return each(x, [&, total = log_sum_exp(x)](std::size_t i) { return x[i] - total; });
}

LongRows long_rows() {
  using Rows = const std::vector<Row>&;
  LongRows rows;
  rows.add("sum", "", 1, [](auto& x) { return tg::sum(x[0]); }) = [](Rows x) { return Row{sum_of(x[0])}; };
  rows.add("mean", "", 1, [](auto& x) { return tg::mean(x[0]); }) = [](Rows x) { return Row{mean_of(x[0])}; };
  rows.add("var", "", 1, [](auto& x) { return tg::var(x[0], 0, 0); }) = [](Rows x) {
    return Row{mean_of(squares_about(x[0], mean_of(x[0])))};
  };
  rows.add("amax", "", 1, [](auto& x) { return tg::amax(x[0]); }) = [](Rows x) { return Row{std::ranges::max(x[0])}; };
  rows.add("softmax", "", 1, [](auto& x) { return tg::softmax(x[0], 0); }) = [](Rows x) { return softmax(x[0]); };
  rows.add("masked_softmax", "", 1, [](auto& x) { return tg::masked_softmax(tg::unsqueeze(x[0], 0), {}); }) =
      [](Rows x) { return softmax(x[0]); };
  rows.add("log_softmax", "", 1, [](auto& x) { return tg::log_softmax(x[0], 0); }) = [](Rows x) {
    return log_softmax(x[0]);
  };
  rows.add("layer_norm", "", 3, [](auto& x) { return tg::layer_norm(x[0], x[1], x[2]); }) = [](Rows x) {
    const Real mean = mean_of(x[0]), scale = 1 / std::sqrt(mean_of(squares_about(x[0], mean)) + Real(1e-5));
    return each(x[0], [&](std::size_t i) { return (x[0][i] - mean) * scale * x[1][i] + x[2][i]; });
  };
  rows.add("rms_norm", "", 2, [](auto& x) { return tg::rms_norm(x[0], x[1], 1e-5); }) = [](Rows x) {
    const Real scale = 1 / std::sqrt(mean_of(squares_about(x[0], 0)) + Real(1e-5));
    return each(x[0], [&](std::size_t i) { return x[0][i] * scale * x[1][i]; });
  };
  rows.add("cross_entropy", "a label", 1, [](auto& x) { return tg::cross_entropy(x[0], tg::IntArray(7)); }) =
      [](Rows x) { return Row{-log_softmax(x[0])[7]}; };
  rows.add("cross_entropy", "a smoothed label", 1,
           [](auto& x) { return tg::cross_entropy(x[0], tg::IntArray(7), {.label_smoothing = 0.25}); }) = [](Rows x) {
    const Row y = log_softmax(x[0]);
    return Row{-Real(0.75) * y[7] - Real(0.25) * mean_of(y)};
  };
  rows.add("cross_entropy", "probabilities", 2, [](auto& x) { return tg::cross_entropy(x[0], x[1]); }) = [](Rows x) {
    return Row{-dot(log_softmax(x[0]), x[1])};
  };
  rows.add("binary_cross_entropy_with_logits", "", 2,
           [](auto& x) { return tg::binary_cross_entropy_with_logits(x[0], x[1]); }) = [](Rows x) {
    return Row{mean_of(each(x[0], [&](std::size_t i) { return std::log1p(std::exp(x[0][i])) - x[0][i] * x[1][i]; }))};
  };
  rows.add("mse_loss", "", 2, [](auto& x) { return tg::mse_loss(x[0], x[1]); }) = [](Rows x) {
    return Row{mean_of(each(x[0], [&](std::size_t i) { return std::pow(x[0][i] - x[1][i], Real(2)); }))};
  };
  const ByLoops product = [](Rows x) { return Row{dot(x[0], x[1])}; };
  rows.add("matmul", "", 2, [](auto& x) { return tg::matmul(x[0], x[1]); }) = product;
  rows.add("einsum", "", 2, [](auto& x) { return tg::einsum("i,i->", x[0], x[1]); }) = product;
  rows.add("linear", "", 2, [](auto& x) { return tg::linear(x[0], tg::unsqueeze(x[1], 0)); }) = product;
  return rows;
}

}  // namespace

TEST_CASE("Reductions of rows longer than a block match their definition, gradients along random directions") {
  const LongRows rows = long_rows();
  for (std::size_t row = 0; row < rows.by_loops.size(); ++row) {
    const operations::Sample& sample = rows.table.samples[row];
    INFO(sample.title());
    const std::vector<tg::Array<double>> results = operations::results_of<double>(sample);
    operations::check_results(operations::results_of<float>(sample), results, 1e-5);
    std::vector<Row> x;
    for (const auto& input : operations::parameters_of<double>(sample)) x.push_back(row_of(input.value()));
    check_close(tg::array<double>(row_of(results[0])), tg::array<double>(rows.by_loops[row](x)), 1e-12);

    const Row dy = row_of(numbers<double>(draw(results[0].shape()), x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      CAPTURE(i);
      const Row direction = row_of(numbers<double>(draw({x[i].size()}), 40 + i));
      const auto moved_by = [&](Real step) {
        std::vector<Row> moved = x;
        for (std::size_t j = 0; j < direction.size(); ++j) moved[i][j] += step * direction[j];
        return dot(dy, rows.by_loops[row](moved));
      };
      const Row gradient = row_of(results[i + 1]);
      const Real difference = (moved_by(1e-6L) - moved_by(-1e-6L)) / 2e-6L;
      CHECK(std::abs(dot(gradient, direction) - difference) <= 1e-8L * std::sqrt(dot(gradient, gradient)));
    }
  }
}

// ---- large extents ------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 18;

template <class T> tg::IntArray labels_of(const tg::Tensor<T>& x) { return tg::IntArray(tg::Shape{x.shape()[0]}, 1); }
template <class T> tg::Array<T> weights_of(const tg::Tensor<T>& x) {
  return tg::Array<T>(tg::Shape{x.shape().back()}, T(0.7));
}

// Every sum, mean, norm and loss over 2^18 elements. Summing them one by one in float has an error of about 1e-3,
// because all are positive and of similar size.
operations::Table sums_of_many() {
  using tg::Reduction;
  operations::Table table;
  const auto near = [](const tg::Shape& shape, double low = 0.1, double high = 0.1001) {
    return draw(shape, low, high);
  };
  const tg::Shape vector{kLarge}, row{1, kLarge}, rows{2, kLarge}, columns{kLarge, 2};
  const auto reduction = [&]<class F>(const char* name, double high, F) {
    table.add(name, "all", {near(vector, 0.1, high)}, [](auto& x) { return F()(x[0], tg::Axes{}); });
    table.add(name, "rows", {near(rows, 0.1, high)}, [](auto& x) { return F()(x[0], tg::Axes{1}); });
    table.add(name, "columns", {near(columns, 0.1, high)}, [](auto& x) { return F()(x[0], tg::Axes{0}); });
  };
  reduction("sum", 0.1001, [](auto& x, const tg::Axes& axes) { return tg::sum(x, axes); });
  reduction("mean", 0.1001, [](auto& x, const tg::Axes& axes) { return tg::mean(x, axes); });
  reduction("var", 1, [](auto& x, const tg::Axes& axes) { return tg::var(x, axes); });
  for (const tg::Shape& shape : {rows, columns}) {
    table.add("softmax", "", {near(shape)}, [](auto& x) { return tg::softmax(x[0], x[0].shape()[0] == 2 ? 1 : 0); });
    table.add("log_softmax", "", {near(shape)},
              [](auto& x) { return tg::log_softmax(x[0], x[0].shape()[0] == 2 ? 1 : 0); });
    const std::size_t width = shape[1];
    table.add("layer_norm", "", {near(shape, 0.1, 1), near({width}, 1, 2), near({width})},
              [](auto& x) { return tg::layer_norm(x[0], x[1], x[2]); });
    table.add("rms_norm", "", {near(shape, 0.1, 1), near({width}, 1, 2)},
              [](auto& x) { return tg::rms_norm(x[0], x[1]); });
  }
  table.add("layer_norm", "opposite numbers", {near({2}, 1, 2), near({2})}, [](auto& x) {
    const auto rows_of_two = tg::expand(x[0].detach() * tg::IntArray{-1, 1}, {kLarge, 2});
    return tg::layer_norm(rows_of_two, x[0], x[1], 0);
  });
  table.add("masked_softmax", "", {near(row)}, [](auto& x) { return tg::masked_softmax(x[0], {}); });

  table.add("matmul", "long rows", {near(rows), near(columns)}, [](auto& x) { return tg::matmul(x[0], x[1]); });
  table.add("matmul", "vectors", {near(vector), near(vector)}, [](auto& x) { return tg::matmul(x[0], x[1]); });
  table.add("linear", "long rows", {near(rows), near({3, kLarge}), near({3})},
            [](auto& x) { return tg::linear(x[0], x[1], x[2]); });
  table.add("linear", "many rows", {near(columns), near({3, 2}), near({3})},
            [](auto& x) { return tg::linear(x[0], x[1], x[2]); });
  table.add("einsum", "", {near(columns), near(columns)}, [](auto& x) { return tg::einsum("ij,ik->jk", x[0], x[1]); });
  table.add("mul", "broadcast", {near(columns), near({2})}, [](auto& x) { return x[0] * x[1]; });
  table.add("add", "broadcast", {near({1}), near(vector)}, [](auto& x) { return x[0] + x[1]; });

  const auto losses = [&]<Reduction R>(std::integral_constant<Reduction, R>) {
    for (const tg::Shape& shape : {row, columns}) {
      const std::vector<operations::Draw> logits{near(shape)};
      const double share = 1.0 / static_cast<double>(shape[1]);
      const std::vector<operations::Draw> with_target{near(shape), near(shape, 0.5 * share, 1.5 * share)};
      table.add("cross_entropy", "labels", logits,
                [](auto& x) { return tg::cross_entropy(x[0], labels_of(x[0]), {.reduction = R}); });
      table.add("cross_entropy", "smoothed and weighted labels", logits, [](auto& x) {
        return tg::cross_entropy(x[0], labels_of(x[0]),
                                 {.label_smoothing = 0.9, .weight = weights_of(x[0]), .reduction = R});
      });
      table.add("cross_entropy", "probabilities", with_target,
                [](auto& x) { return tg::cross_entropy(x[0], x[1], {.reduction = R}); });
      table.add("cross_entropy", "smoothed and weighted probabilities", with_target, [](auto& x) {
        return tg::cross_entropy(x[0], x[1], {.label_smoothing = 0.5, .weight = weights_of(x[0]), .reduction = R});
      });
      table.add("cross_entropy", "equal probabilities", logits,
                [](auto& x) { return tg::cross_entropy(x[0].detach(), x[0], {.reduction = R}); });
      table.add("binary_cross_entropy_with_logits", "", with_target,
                [](auto& x) { return tg::binary_cross_entropy_with_logits(x[0], x[1], {.reduction = R}); });
      table.add("mse_loss", "", {near(shape, 0.5, 0.6), near(shape)},
                [](auto& x) { return tg::mse_loss(x[0], x[1], R); });
    }
  };
  losses(std::integral_constant<Reduction, Reduction::mean>());
  losses(std::integral_constant<Reduction, Reduction::sum>());
  losses(std::integral_constant<Reduction, Reduction::none>());
  return table;
}

// The value and the inputs' gradients for positive cotangents of similar size.
template <class T> std::vector<tg::Array<T>> swept(const operations::Sample& sample) {
  const operations::Parameters<T> x = operations::parameters_of<T>(sample);
  tg::Tape tape;
  const tg::Tensor<T> y = operations::function_of<T>(sample)(operations::inputs_of(x));
  y.backward(numbers<T>(draw(y.shape(), 0.1, 0.2), x.size()));
  return operations::with_gradients(y.value(), x);
}

}  // namespace

TEST_CASE("Sums, norms, products and losses over 2^18 elements are accurate in float") {
  for (const operations::Sample& sample : sums_of_many().samples) {
    INFO(sample.title(), ", ", tg::to_string(sample.inputs[0].shape));
    const auto in_float = swept<float>(sample);
    const auto in_double = swept<double>(sample);
    for (std::size_t i = 0; i < in_double.size(); ++i) {
      CAPTURE(i);  // 0: the value, then the gradient of each input
      CHECK(operations::relative_difference(in_float[i], in_double[i]) <= 2e-5);
    }
  }
}

TEST_CASE_TEMPLATE("rotary_embedding's angles are accurate at every position, on several threads", T, float, double) {
  constexpr std::size_t batch = 9, rows = 130, heads = 3, width = 8;
  const Threads limit(3);
  for (const std::size_t first : {0UL, 1000UL, 5'000'000UL, (1UL << 24) + 1, (1UL << 33) + 1})
    for (const double base : {10000.0, 3.0}) {
      CAPTURE(first);
      CAPTURE(base);
      const tg::Array<T> x = numbers<T>(draw({batch, rows, heads * width}), 0), dy = numbers<T>(draw(x.shape()), 1);
      tg::Array<double> y(x.shape()), dx(x.shape());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / (heads * width) % rows, place = i % width, pair = place % (width / 2);
        const bool is_second = place >= width / 2;
        const std::size_t other = is_second ? i - width / 2 : i + width / 2;
        const Real frequency = std::pow(Real(base), -2 * Real(pair) / Real(width));
        const Real angle = Real(first + row) * frequency, sine = is_second ? std::sin(angle) : -std::sin(angle);
        y.data()[i] = static_cast<double>(x.data()[i] * std::cos(angle) + x.data()[other] * sine);
        dx.data()[i] = static_cast<double>(dy.data()[i] * std::cos(angle) - dy.data()[other] * sine);
      }
      const tg::Parameter<T> parameter(x);
      poison(x.size() * sizeof(T));
      tg::Tape tape;
      const tg::Tensor<T> rotated = tg::rotary_embedding(parameter, heads, {.base = base, .first = first});
      rotated.backward(dy);
      const double tolerance = (std::is_same_v<T, float> ? 3e-7 : 1e-15) + 1e-15 * static_cast<double>(first + rows);
      check_close(rotated.value(), y, tolerance);
      check_close(parameter.grad(), dx, tolerance);
    }
}
