/// Matrix products at sizes that select different code paths: BLAS and internal loops, several threads, uneven parts,
/// strides, and memory that held NaN. All are compared with plain loops.
#include <tapegrad/engine/kernels/gemm.hpp>

#include <initializer_list>

#include "close.hpp"
#include "poison.hpp"
#include "sanitized.hpp"
#include "special_values.hpp"
#include "stepped.hpp"
#include "threads.hpp"

namespace tg = tapegrad;
using tg::BFloat16;
using tg::Shape;
using tg::detail::Matrix;
using Array = tg::Array<double>;

namespace {

template <class T> T nearest(double x) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return BFloat16::nearest(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

// A matrix of random numbers with gaps of NaN between rows.
template <class T> struct Stored {
  std::size_t rows, columns, stride;
  bool transposed;
  std::vector<T> memory;

  Stored(std::size_t rows_, std::size_t columns_, bool transposed_, std::size_t gap)
      : rows(transposed_ ? columns_ : rows_),
        columns(transposed_ ? rows_ : columns_),
        stride(columns + gap),
        transposed(transposed_),
        memory(rows * stride, nearest<T>(kNaN)) {
    const Array numbers = tg::uniform<double>({rows, columns}, -1, 1);
    for (std::size_t i = 0; i < numbers.size(); ++i) row(i / columns)[i % columns] = nearest<T>(numbers.data()[i]);
  }

  Matrix<const T> matrix() const {
    const Matrix<const T> stored(memory.data(), rows, columns, stride);
    return transposed ? stored.t() : stored;
  }
  double at(std::size_t r, std::size_t c) const { return memory[transposed ? c * stride + r : r * stride + c]; }
  T* row(std::size_t r) { return memory.data() + r * stride; }  // as stored
};

struct Product {
  std::size_t m, k, n;
  bool a_transposed = false, b_transposed = false;
  double alpha = 1, beta = 0;
  std::size_t gap = 0;
};

// Compares a product on these numbers of threads, with every instruction set, with plain loops. B: the type of b
template <class T, class B = T>
void check_product(const Product& p, std::initializer_list<std::size_t> thread_counts, bool with_bias) {
  INFO("p.m = ", p.m, ", p.k = ", p.k, ", p.n = ", p.n, ", with_bias = ", with_bias);
  const Stored<T> a(p.m, p.k, p.a_transposed, p.gap);
  const Stored<B> b(p.k, p.n, p.b_transposed, p.gap);
  Stored<T> before(p.m, p.n, false, p.gap);
  const tg::Array<T> bias = tg::uniform<T>({p.n}, -1, 1);
  const bool overwrites = with_bias || p.beta == 0;  // old contents must not be read

  Array right(Shape{p.k, p.n});  // b, converted once: this code is not optimized
  for (std::size_t l = 0; l < p.k; ++l)
    for (std::size_t j = 0; j < p.n; ++j) right.data()[l * p.n + j] = b.at(l, j);
  Array expected(Shape{p.m, p.n}, 0.0);
  for (std::size_t i = 0; i < p.m; ++i) {
    double* const sums = expected.data() + i * p.n;
    for (std::size_t l = 0; l < p.k; ++l) {
      const double left = a.at(i, l);
      const double* const row = right.data() + l * p.n;
      for (std::size_t j = 0; j < p.n; ++j) sums[j] += left * row[j];
    }
    T* const stored = before.row(i);
    for (std::size_t j = 0; j < p.n; ++j) {
      sums[j] *= with_bias ? 1 : p.alpha;
      sums[j] += with_bias ? bias.data()[j] : p.beta == 0 ? 0 : p.beta * stored[j];
      if (overwrites) stored[j] = static_cast<T>(kNaN);
    }
  }

  for (const tg::detail::InstructionSet set : tg::detail::instruction_sets())
    for (const std::size_t threads : thread_counts) {
      CAPTURE(static_cast<int>(set));
      CAPTURE(threads);
      const UseInstructionSet use(set);
      Stored<T> c = before;
      if (!std::is_same_v<B, T>) poison_pool();
      for (std::size_t parts = 1; parts < std::min<std::size_t>(threads, 8); ++parts)
        poison(parts * p.m * p.n * sizeof(T));
      const Matrix<T> out(c.memory.data(), p.m, p.n, c.stride);
      const Threads limit(threads);
      if (with_bias)
        tg::detail::gemm_plus_bias<T>(a.matrix(), b.matrix(), bias.data(), out);
      else
        tg::detail::gemm<T>(a.matrix(), b.matrix(), out, static_cast<T>(p.alpha), static_cast<T>(p.beta));

      Array actual(Shape{p.m, p.n});
      bool gaps_are_kept = true;
      for (std::size_t i = 0; i < p.m; ++i) {
        const T* const stored = c.row(i);
        std::copy_n(stored, p.n, actual.data() + i * p.n);
        for (std::size_t j = p.n; j < c.stride; ++j) gaps_are_kept = gaps_are_kept && std::isnan(stored[j]);
      }
      CHECK(gaps_are_kept);
      check_close(actual, expected,
                  (std::is_same_v<T, float> ? 2e-6 : 1e-13) * std::sqrt(static_cast<double>(p.k + 1)));
    }
}

// Expects the same bits on any number of threads.
template <class T, class B = T> void check_bits(const Product& p) {
  CAPTURE(p.m);
  CAPTURE(p.n);
  const Stored<T> a(p.m, p.k, false, 0), before(p.m, p.n, false, 0);
  const Stored<B> b(p.k, p.n, p.b_transposed, 0);
  const auto multiply = [&](std::size_t threads) {
    const Threads limit(threads);
    Stored<T> c = before;
    tg::detail::gemm<T>(a.matrix(), b.matrix(), {c.memory.data(), p.m, p.n}, 1, static_cast<T>(p.beta));
    return c.memory;
  };
  const std::vector<T> once = multiply(1);
  for (const std::size_t threads : {2, 3, 7}) CHECK((multiply(threads) == once));
  if constexpr (std::is_same_v<B, T>) {
    tg::Array<T> here(Shape{p.m, p.n});
    tg::detail::gemm_on_this_thread<T>(a.matrix(), b.matrix(), {here.data(), p.m, p.n});
    check_close(here, tg::array<T>(once, here.shape()), 1e-4);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("Products of every shape, transposed or not, match plain sums on any number of threads", T, float,
                   double) {
  tg::manual_seed(1);
  const std::vector<Product> products{
      {1, 1, 1},
      {3, 2, 5, true},
      {17, 16, 33, true, true, 0.5, 2, 3},
      {20, 300, 400, false, true},               // splits columns among threads
      {20, 300, 400, true, true, -0.5, 1, 1},    //
      {400, 300, 20, false, false, 2, 0.25, 2},  // splits rows
      {401, 70, 65, true, false, 2, 1},          // a shorter last part
      {65, 70, 401, false, false, 0.5, 1, 5},    //
      {9, 4500, 10, true, false, 0.5, 1},        // splits the inner extent, for a weight's gradient
      {30, 4501, 20, true, false, 1, 0},         //
      {64, 600, 64, false, true, 0.125, 1, 4},   //
      {100, 999, 90, true, false, -2, 0.5, 1},   //
      {300, 64, 65, false, true, 0.5, 1, 3},     // in blocks of rows, by a copy of b
      {301, 63, 66},                             // in blocks of rows
      {63, 400, 66, true, false, 0.5, 0.25, 2},  // in blocks of the inner extent
      {65, 401, 64, true, true, 2, 1},           //
      {5, 6, 7, false, true, 0.5, 2, 1},         // a copy of b in few and partial blocks
  };
  for (const Product& product : products)
    for (const bool with_bias : {false, true}) check_product<T>(product, {1, 2, 3, 7}, with_bias);
}

TEST_CASE_TEMPLATE("Products of one row or a few rows match plain sums on any instruction set", T, float, double) {
  tg::manual_seed(1);
  std::vector<Product> products{
      {1, 300, 400, false, true},                // splits columns among threads
      {1, 300, 401, false, true, 0.5, 2, 3},     //
      {5, 129, 300, false, true, -0.5, 1, 1},    //
      {8, 257, 130, false, true, 2, 0, 5},       //
      {9, 130, 257, false, true},                // for BLAS
      {1, 700, 500},                             // splits the inner extent
      {1, 701, 333, false, false, 0.5, 2, 3},    //
      {2, 2000, 70, false, false, -2, 0.25, 1},  // for BLAS
      {1, 90000, 1, false, true},                //
      {1, 90001, 2, false, true, 0.5, 1, 3},     //
      {1, 2, 70000, false, false, 2, 1, 1},      // few rows on the right: splits columns
      {1, 20, 9000, false, false, 0.5, 2},       // wider than a block
      {400, 300, 1},                             // a column on the right, stored as a column and as a row
      {400, 300, 1, true, true, -0.5, 2},        //
      {400, 300, 1, false, false, 2, 1, 3},      // with gaps between its elements
      {1, 300, 400, true},                       // a row stored as a column,
      {1, 300, 400, true, true, 1, 0, 2},        // and with gaps between its elements
  };
  for (std::size_t n = 1; n <= 140; ++n)
    for (const bool transposed : {false, true}) {
      products.push_back({1, n / 2 + 1, n, false, transposed, -0.5, n % 3 == 0 ? 0.0 : 0.5, n % 2});
      products.push_back({1, n, n / 4 + 1, false, transposed, 2, n % 3 == 0 ? 0.0 : 0.5, n % 2});
    }
  for (const Product& product : products)
    for (const bool with_bias : {false, true}) check_product<T>(product, {1, 3}, with_bias);
}

TEST_CASE_TEMPLATE("Products with bfloat16 match plain sums", T, float, double) {
  tg::manual_seed(1);
  std::vector<Product> products{
      {1, 300, 400, false, true},              //
      {1, 301, 401, false, true, 0.5, 2, 3},   //
      {5, 129, 300, false, true, -0.5, 1, 1},  //
      {8, 257, 130, false, true, 2, 0, 5},     //
      {9, 130, 257, false, true},              // widened for BLAS
      {20, 300, 1000, false, true, 1, 1},      // several parts
      {33, 3000, 700, false, true, 0.5, 2, 3},
      {9, 5, 1, true, true},
      {40, 70, 900},  // the gradient of an input
      {1, 700, 500, false, false, 2, 1, 3},
      {3, 300, 70, true, true, -1, 0.5, 2},
      {9, 8193, 1040, false, true},  // one unit of columns at a time per part
      {12, 300000, 3, false, true},  // less than one unit of columns fits into the cache
  };
  for (std::size_t n = 1; n <= 70; ++n)
    products.push_back({1 + n % 8, n, n / 2 + 1, false, true, 2, n % 3 == 0 ? 0.0 : 0.5, n % 2});
  for (const Product& product : products)
    for (const bool with_bias : {false, true})
      if (!kSanitized || with_bias == (product.n % 2 == 0)) check_product<T, BFloat16>(product, {1, 3}, with_bias);
  check_product<T, BFloat16>({2, 1, 100}, {std::size_t{1} << 50}, false);
  tg::Array<T> c{{1, 2}};
  tg::detail::gemm<T>({c.data(), 1, 0}, Matrix<const BFloat16>(nullptr, 2, 0).t(), {c.data(), 1, 2});
  CHECK(c == tg::Array<T>{{0, 0}});
}

TEST_CASE_TEMPLATE(
    "Products of one row or a few rows, and small ones with bfloat16, have the same bits on any number "
    "of threads",
    T, float, double) {
  tg::manual_seed(1);
  for (const Product& product : std::vector<Product>{{1, 768, 1000, false, true},
                                                     {1, 1000, 768},
                                                     {8, 768, 500, false, true},
                                                     {1, 200000, 1, false, true},
                                                     {500, 768, 1}})
    check_bits<T>(product);
  for (const Product& product : std::vector<Product>{{1, 1800, 1000, false, false, 1, 1},  // a gradient of one row
                                                     {1, 3200, 496, false, false, 1, 1},
                                                     {8, 300, 700, false, true, 1, 1},
                                                     {20, 150, 170, false, true},
                                                     {64, 64, 120}})
    check_bits<T, BFloat16>(product);
}

TEST_CASE_TEMPLATE("A row's product has the same bits for any division of its columns", T, float, double) {
  tg::manual_seed(2);
  constexpr std::size_t kInner = 50, kColumns = 300;
  const Stored<T> a(1, kInner, false, 0), b(kInner, kColumns, false, 0);
  const tg::Array<T> before = tg::uniform<T>({kColumns}, -1, 1);
  for (const tg::detail::InstructionSet set : tg::detail::instruction_sets())
    for (const double beta : {0.0, 1.0, 0.3}) {
      CAPTURE(static_cast<int>(set));
      CAPTURE(beta);
      const UseInstructionSet use(set);
      const auto multiply = [&](std::size_t columns_at_once) {
        tg::Array<T> c = before;
        for (std::size_t first = 0; first < kColumns; first += columns_at_once) {
          const std::size_t last = std::min(first + columns_at_once, kColumns);
          tg::detail::gemm_on_this_thread<T>(a.matrix(), b.matrix().t().rows_between(first, last).t(),
                                             {c.data() + first, 1, last - first}, static_cast<T>(0.7),
                                             static_cast<T>(beta));
        }
        return c;
      };
      const tg::Array<T> whole = multiply(kColumns);
      for (const std::size_t columns : {1, 16, 37, 128, 200}) CHECK(multiply(columns) == whole);
    }
}

TEST_CASE("Matrices with more rows, columns or stride than BLAS can count are refused") {
  constexpr std::size_t kMany = (std::size_t{1} << 32) + 1;  // 1 as an int
  double c[] = {1, 2};
  const double bias[] = {3};
  const auto refused =
      "[gemm] expected rows, columns and row strides of at most 2147483647, the largest integer of BLAS, "
      "got 4294967297";
  const Matrix<const double> a(c, 2, 1), b(c, 1, 1);
  CHECK_THROWS_WITH_AS(tg::detail::gemm<double>(a, {c, 1, 1, kMany}, {c, 2, 1}), refused, std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::detail::gemm<double>({c, 2, 1, kMany}, b, {c, 2, 1, 2}), refused, std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::detail::gemm<double>({c, kMany, 0}, {c, 0, 1}, {c, kMany, 1, 2}), refused,
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::detail::gemm_on_this_thread<double>(a, b, {c, 2, 1, kMany}), refused, std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::detail::gemm_plus_bias<double>(a, b, bias, {c, 2, 1, kMany}), refused,
                       std::invalid_argument);
  CHECK(c[0] == 1);
  CHECK(c[1] == 2);

  constexpr std::size_t kMost = (std::size_t{1} << 31) - 1;
  const auto product = [&](std::size_t stride) {
    double y[] = {0, 0};
    tg::detail::gemm<double>(a, {c, 1, 1, stride}, {y, 2, 1});
    return y[1];
  };
  CHECK(product(kMost) == 2);
  CHECK_THROWS_AS(product(kMost + 1), std::invalid_argument);
}

TEST_CASE("A product with inner extent 0 is beta times the result plus the bias; without rows nothing is written") {
  using Numbers = std::vector<double>;
  Numbers c{kNaN, 2, 3};
  const double bias[] = {4, 5};
  double* const at = c.data();
  tg::detail::gemm<double>({at, 1, 0}, {at, 0, 2}, {at, 1, 2});
  CHECK(c == Numbers{0, 0, 3});
  c = {3, 4, 3};
  tg::detail::gemm<double>({at, 1, 0}, {at, 0, 2}, {at, 1, 2}, 1, 2);
  CHECK(c == Numbers{6, 8, 3});
  tg::detail::gemm_plus_bias<double>({at, 1, 0}, {at, 0, 2}, bias, {at, 1, 2});
  CHECK(c == Numbers{4, 5, 3});
  tg::detail::gemm<double>({at, 0, 1}, {at, 1, 2}, {at, 0, 2});
  tg::detail::gemm_plus_bias<double>({at, 2, 1}, {at, 1, 0}, bias, {at, 2, 0});
  CHECK(c == Numbers{4, 5, 3});
}
