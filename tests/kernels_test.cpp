/// The private loops, on the sizes at which they take another path: several threads, parts that do not come out even,
/// strides, and memory that held NaN. All are held against plain loops.
#include <tapegrad/engine/array/internal/parallel.hpp>
#include <tapegrad/engine/kernels/gemm.hpp>
#include <tapegrad/engine/kernels/instruction_sets.hpp>
#include <tapegrad/engine/kernels/strided.hpp>
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "close.hpp"
#include "poison.hpp"
#include "stepped.hpp"
#include "threads.hpp"

namespace tg = tapegrad;
using tg::Shape;
using tg::detail::Matrix;
using tg::detail::Strides;
using tg::detail::View;
using Array = tg::Array<double>;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ---- matrix products ----------------------------------------------------------------------------------------------

// A matrix of random numbers whose rows lie further apart than they are long, NaN in the gaps.
template <class T> struct Stored {
  std::size_t rows, columns, stride;
  bool transposed;
  tg::Array<T> memory;

  Stored(std::size_t rows_, std::size_t columns_, bool transposed_, std::size_t gap)
      : rows(transposed_ ? columns_ : rows_),
        columns(transposed_ ? rows_ : columns_),
        stride(columns + gap),
        transposed(transposed_),
        memory(Shape{rows, stride}, static_cast<T>(kNaN)) {
    const tg::Array<T> numbers = tg::uniform<T>({rows, columns}, -1, 1);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) memory(r, c) = numbers(r, c);
  }

  Matrix<const T> matrix() const {
    const Matrix<const T> stored(memory.data(), rows, columns, stride);
    return transposed ? stored.t() : stored;
  }
  double at(std::size_t r, std::size_t c) const { return memory.data()[transposed ? c * stride + r : r * stride + c]; }
};

struct Product {
  std::size_t m, k, n;
  bool a_transposed = false, b_transposed = false;
  double alpha = 1, beta = 0;
  std::size_t gap = 0;
};

template <class T> void check_product(const Product& p, std::size_t threads, bool with_bias) {
  CAPTURE(p.m);
  CAPTURE(p.k);
  CAPTURE(p.n);
  CAPTURE(threads);
  CAPTURE(with_bias);
  const Stored<T> a(p.m, p.k, p.a_transposed, p.gap), b(p.k, p.n, p.b_transposed, p.gap);
  Stored<T> c(p.m, p.n, false, p.gap);
  const tg::Array<T> bias = tg::uniform<T>({p.n}, -1, 1);
  const bool overwrites = with_bias || p.beta == 0;  // what stood there must not be read

  Array expected(Shape{p.m, p.n}, 0.0);
  for (std::size_t i = 0; i < p.m; ++i) {
    for (std::size_t l = 0; l < p.k; ++l)
      for (std::size_t j = 0; j < p.n; ++j) expected.data()[i * p.n + j] += a.at(i, l) * b.at(l, j);
    for (std::size_t j = 0; j < p.n; ++j) {
      expected(i, j) *= with_bias ? 1 : p.alpha;
      expected(i, j) += with_bias ? bias(j) : p.beta == 0 ? 0 : p.beta * c.at(i, j);
      if (overwrites) c.memory(i, j) = static_cast<T>(kNaN);
    }
  }

  for (std::size_t parts = 1; parts < threads; ++parts) poison(parts * p.m * p.n * sizeof(T));
  const Matrix<T> out(c.memory.data(), p.m, p.n, c.stride);
  const Threads limit(threads);
  if (with_bias)
    tg::detail::gemm_plus_bias<T>(a.matrix(), b.matrix(), bias.data(), out);
  else
    tg::detail::gemm<T>(a.matrix(), b.matrix(), out, static_cast<T>(p.alpha), static_cast<T>(p.beta));

  Array actual(Shape{p.m, p.n});
  bool gaps_are_kept = true;
  for (std::size_t i = 0; i < p.m; ++i) {
    for (std::size_t j = 0; j < p.n; ++j) actual(i, j) = c.memory(i, j);
    for (std::size_t j = p.n; j < c.stride; ++j) gaps_are_kept = gaps_are_kept && std::isnan(c.memory(i, j));
  }
  CHECK(gaps_are_kept);
  check_close(actual, expected, (std::is_same_v<T, float> ? 2e-6 : 1e-13) * std::sqrt(static_cast<double>(p.k + 1)));
}

// ---- walks --------------------------------------------------------------------------------------------------------

// Whatever an index of the view reads: the element's place in the source.
std::ptrdiff_t place(const View& view, std::size_t flat) {
  std::ptrdiff_t at = view.offset;
  for (std::size_t axis = view.shape.size(); axis-- > 0; flat /= view.shape[axis])
    at += static_cast<std::ptrdiff_t>(flat % view.shape[axis]) * view.strides[axis];
  return at;
}

}  // namespace

TEST_CASE_TEMPLATE("Products of every shape, transposed or not, are sums of products on any number of threads", T,
                   float, double) {
  tg::manual_seed(1);
  const std::vector<Product> products{
      {1, 1, 1},
      {3, 2, 5, true},
      {17, 16, 33, true, true, 0.5, 2, 3},
      {20, 300, 400, false, true},               // columns are shared out
      {20, 300, 400, true, true, -0.5, 1, 1},    //
      {400, 300, 20, false, false, 2, 0.25, 2},  // rows are
      {401, 70, 65, true, false, 2, 1},          // whose last part is shorter
      {65, 70, 401, false, false, 0.5, 1, 5},    //
      {9, 4500, 10, true, false, 0.5, 1},        // the inner extent is, for the gradient of a weight
      {30, 4501, 20, true, false, 1, 0},         //
      {64, 600, 64, false, true, 0.125, 1, 4},   //
      {100, 999, 90, true, false, -2, 0.5, 1},   //
  };
  for (const std::size_t threads : {1, 2, 3, 7})
    for (const Product& product : products)
      for (const bool with_bias : {false, true}) check_product<T>(product, threads, with_bias);
}

// Loops of our own, for every instruction set: the lengths of vectors and their parts, and both ways to share out.
TEST_CASE_TEMPLATE("Products of a row or a few are sums of products on any instruction set", T, float, double) {
  tg::manual_seed(1);
  std::vector<Product> products{
      {1, 300, 400, false, true},                // columns are shared out
      {1, 300, 401, false, true, 0.5, 2, 3},     //
      {5, 129, 300, false, true, -0.5, 1, 1},    //
      {8, 257, 130, false, true, 2, 0, 5},       //
      {9, 130, 257, false, true},                // for BLAS
      {1, 700, 500},                             // the inner extent is
      {1, 701, 333, false, false, 0.5, 2, 3},    //
      {2, 2000, 70, false, false, -2, 0.25, 1},  //
      {3, 2000, 70},                             // for BLAS
      {1, 90000, 1, false, true},                //
      {1, 90001, 2, false, true, 0.5, 1, 3},     //
      {1, 2, 70000, false, false, 2, 1, 1},      // of few rows on the right, columns are
      {2, 20, 9000},                             // wider than a block
      {400, 300, 1},                             // columns on the right, stored as a column and as a row
      {400, 300, 1, true, true, -0.5, 2},        //
      {400, 300, 1, false, false, 2, 1, 3},      // whose elements lie apart
      {1, 300, 400, true},                       // a row that is stored as a column,
      {1, 300, 400, true, true, 1, 0, 2},        // and whose elements lie apart
  };
  for (std::size_t n = 1; n <= 140; ++n)
    for (const bool transposed : {false, true}) {
      products.push_back({1, n / 2 + 1, n, false, transposed, -0.5, n % 3 == 0 ? 0.0 : 0.5, n % 2});
      products.push_back({1, n, n / 4 + 1, false, transposed, 2, n % 3 == 0 ? 0.0 : 0.5, n % 2});
    }
  for (const tg::detail::InstructionSet set : tg::detail::instruction_sets()) {
    CAPTURE(static_cast<int>(set));
    const UseInstructionSet use(set);
    for (const std::size_t threads : {1, 3})
      for (const Product& product : products)
        for (const bool with_bias : {false, true}) check_product<T>(product, threads, with_bias);
  }
}

TEST_CASE_TEMPLATE("A product of a row or a few is the same to the bit on any number of threads", T, float, double) {
  tg::manual_seed(1);
  for (const Product& p : std::vector<Product>{{1, 768, 1000, false, true},
                                               {1, 1000, 768},
                                               {8, 768, 500, false, true},
                                               {2, 768, 500},
                                               {1, 200000, 1, false, true},
                                               {500, 768, 1}}) {
    CAPTURE(p.m);
    CAPTURE(p.n);
    const Stored<T> a(p.m, p.k, false, 0), b(p.k, p.n, p.b_transposed, 0);
    tg::Array<T> once(Shape{p.m, p.n}), again(once.shape()), here(once.shape());
    const auto multiply = [&](tg::Array<T>& c, std::size_t threads) {
      const Threads limit(threads);
      tg::detail::gemm<T>(a.matrix(), b.matrix(), {c.data(), p.m, p.n});
    };
    multiply(once, 1);
    for (const std::size_t threads : {2, 3, 7}) {
      multiply(again, threads);
      CHECK(again == once);
    }
    tg::detail::gemm_on_this_thread<T>(a.matrix(), b.matrix(), {here.data(), p.m, p.n});
    check_close(here, once, 1e-4);
  }
}

TEST_CASE("A product of no inner elements is zeros, or what beta leaves, and the bias; one of no rows writes nothing") {
  double c[] = {kNaN, 2, 3};
  const double bias[] = {4, 5};
  tg::detail::gemm<double>({c, 1, 0}, {c, 0, 2}, {c, 1, 2});
  CHECK(c[0] == 0);
  CHECK(c[1] == 0);
  c[0] = 3, c[1] = 4;
  tg::detail::gemm<double>({c, 1, 0}, {c, 0, 2}, {c, 1, 2}, 1, 2);
  CHECK(c[0] == 6);
  CHECK(c[1] == 8);
  tg::detail::gemm_plus_bias<double>({c, 1, 0}, {c, 0, 2}, bias, {c, 1, 2});
  CHECK(c[0] == 4);
  CHECK(c[1] == 5);
  CHECK(c[2] == 3);
  tg::detail::gemm<double>({c, 0, 1}, {c, 1, 2}, {c, 0, 2});
  tg::detail::gemm_plus_bias<double>({c, 2, 1}, {c, 1, 0}, bias, {c, 2, 0});
  CHECK(c[0] == 4);
}

TEST_CASE("A loop's chunks cover every index once, in order within a chunk, however many threads and chunks") {
  for (const std::size_t threads : {1, 2, 3, 7}) {
    const Threads limit(threads);
    for (const std::size_t extent : {0, 1, 2, 63, 64, 65, 1000})
      for (const std::size_t chunks : {0, 1, 2, 3, 16, 63, 64, 65, 2000}) {
        CAPTURE(threads);
        CAPTURE(extent);
        CAPTURE(chunks);
        std::vector<std::atomic<int>> visits(extent), bodies(std::max<std::size_t>(chunks, 1));
        std::atomic<bool> inside{true}, even{true};
        const std::size_t parts =
            std::clamp<std::size_t>(chunks, 1, std::max<std::size_t>(std::min<std::size_t>(extent, 64), 1));
        tg::detail::parallel_for(extent, chunks, [&](std::size_t begin, std::size_t end, std::size_t chunk) {
          if (begin > end || end > extent || chunk >= parts) {
            inside = false;
            return;
          }
          if (end - begin < extent / parts || end - begin > extent / parts + 1) even = false;
          ++bodies[chunk];
          for (std::size_t i = begin; i < end; ++i) ++visits[i];
        });
        CHECK(inside);
        CHECK(even);
        CHECK(std::all_of(visits.begin(), visits.end(), [](const auto& visit) { return visit == 1; }));
        CHECK(std::count_if(bodies.begin(), bodies.end(), [](const auto& body) { return body == 1; }) ==
              static_cast<std::ptrdiff_t>(extent == 0 ? 0 : parts));
      }
  }
}

TEST_CASE("A loop within a loop runs on the thread that meets it, and threads are back for the next loop") {
  const Threads limit(3);
  CHECK(tg::detail::threads_here() == 3);
  std::atomic<std::size_t> steps{0}, alone{0};
  tg::detail::parallel_for(8, 8, [&](std::size_t, std::size_t) {
    alone += tg::detail::threads_here() == 1;
    tg::detail::parallel_for(10, 5, [&](std::size_t begin, std::size_t end) { steps += end - begin; });
  });
  CHECK(steps == 80);
  CHECK(alone == 8);
  CHECK(tg::detail::threads_here() == 3);
}

TEST_CASE("How work is cut does not depend on the number of threads") {
  for (const std::size_t threads : {1, 2, 40}) {
    const Threads limit(threads);
    CHECK(tg::detail::chunks_for(0) == 1);
    CHECK(tg::detail::chunks_for(16384) == 1);
    CHECK(tg::detail::chunks_for(3 * 16384) == 3);
    CHECK(tg::detail::chunks_for(std::size_t{1} << 40) == 16);
  }
}

TEST_CASE_TEMPLATE("Views are read and written where they see, and added to in every place that they see", T, float,
                   double) {
  tg::manual_seed(2);
  const std::vector<View> views{
      {{}, {}, 4},                        // one element, not the first
      {{7}, {1}, 2},                      //
      {{7}, {-3}, 30},                    // backwards
      {{5, 4}, {1, 5}, 0},                // a transpose
      {{3, 1, 4}, {8, 8, 2}, 1},          // every other element
      {{2, 3, 5}, {0, 5, 1}, 3},          // repeated along the first axis,
      {{3, 2, 5}, {5, 0, 1}, 3},          // a middle one,
      {{3, 5, 2}, {5, 1, 0}, 3},          // the last one,
      {{4, 3}, {0, 0}, 11},               // all of them
      {{0, 3}, {3, 1}, 0},                // nothing
      {{300, 200}, {1, 300}, 17},         // large enough for several threads
      {{40, 300, 7}, {2100, 1, 300}, 0},  //
      {{6, 100, 150}, {0, 150, 1}, 9},    //
      {{100, 6, 150}, {150, 0, 1}, 9},    //
      {{1, 90000}, {0, 1}, 5},            //
      {{70000}, {0}, 3},                  //
      {{300, 300}, {0, 1}, 0},            // sums of columns
      {{300, 300}, {1, 0}, 0},            // sums of rows
  };
  for (const View& view : views)
    for (const std::size_t threads : {1, 3}) {
      CAPTURE(tg::to_string(view.shape));
      CAPTURE(threads);
      const Threads limit(threads);
      const tg::Array<T> source = tg::uniform<T>({90100}, -1, 1), elements = tg::uniform<T>(view.shape, -1, 1);
      poison(tg::element_count(view.shape) * sizeof(T));
      const tg::Array<T> seen = tg::detail::gather(source, view);
      Array expected(view.shape), sums = source;
      bool each_once = true;
      std::vector<bool> written(source.size(), false);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto at = static_cast<std::size_t>(place(view, i));
        expected.data()[i] = source.data()[at];
        sums.data()[at] += elements.data()[i];
        each_once = each_once && !written[at];
        written[at] = true;
      }
      CHECK(seen == expected);
      tg::Array<T> added = source;
      tg::detail::scatter_add(added, elements, view);
      check_close(added, sums, std::is_same_v<T, float> ? 1e-4 : 1e-12);
      if (!each_once) continue;
      tg::Array<T> overwritten = source;
      tg::detail::scatter(overwritten, elements, view);
      CHECK(tg::detail::gather(overwritten, view) == elements);
      for (std::size_t i = 0; i < source.size(); ++i)
        if (written[i]) overwritten.data()[i] = source.data()[i];
      CHECK(overwritten == source);  // elsewhere nothing is written
    }
}

TEST_CASE_TEMPLATE("Operands that are stretched along any axis meet the elements that NumPy says", T, float, double) {
  tg::manual_seed(3);
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{}, {}},
      {{}, {3, 4}},
      {{3, 4}, {}},
      {{3, 4}, {4}},
      {{4}, {3, 4}},
      {{3, 1}, {4}},
      {{1, 4}, {3, 1}},
      {{3, 1}, {3, 4}},
      {{2, 3, 4}, {3, 1}},
      {{2, 1, 4}, {1, 3, 1}},
      {{2, 1, 4}, {2, 3, 4}},
      {{1, 1, 1}, {5}},
      {{0, 3}, {1, 3}},
      {{2, 0}, {1}},
      {{1, 2, 1, 2}, {2, 1, 3, 1}},
      {{300, 300}, {300, 1}},
      {{300, 1}, {300}},
      {{70001}, {70001}},
      {{70001}, {1}},
      {{1}, {70001}},
  };
  for (const auto& [left, right] : shapes) {
    CAPTURE(tg::to_string(left));
    CAPTURE(tg::to_string(right));
    const tg::Array<T> x = tg::uniform<T>(left, 1, 2), y = tg::uniform<T>(right, 1, 2);
    const Shape shape = tg::detail::broadcast_shapes("test", left, right);
    const View of_x{shape, tg::detail::broadcast_strides(left, shape)},
        of_y{shape, tg::detail::broadcast_strides(right, shape)};
    tg::Array<T> quotients(shape);
    for (std::size_t i = 0; i < quotients.size(); ++i)
      quotients.data()[i] = x.data()[place(of_x, i)] / y.data()[place(of_y, i)];
    poison(quotients.size() * sizeof(T));
    check_close(tg::detail::zip<T>("test", x, y, [](T a, T b) { return a / b; }), quotients, 1e-6);
    check_close(tg::detail::zip<T>("test", x, y, tg::detail::vector_loops<T>().over), quotients, 1e-6);
    check_close((tg::Tensor<T>(x) / tg::Tensor<T>(y)).value(), quotients, 1e-6);
  }
}

TEST_CASE_TEMPLATE("Runs are summed whole, whatever their length", T, float, double) {
  tg::manual_seed(4);
  const tg::Array<T> x = tg::uniform<T>({5000}, -1, 1);
  for (const std::size_t length : {0, 1, 2, 31, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 5000}) {
    CAPTURE(length);
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += x(i);
    CHECK(tg::detail::sum_run(x.data(), length) == doctest::Approx(sum).epsilon(1e-5));
  }
}

TEST_CASE("Sums of many floats lose no more digits than one float has") {
  // Beside 2^34 floats lie 2048 apart: a block of 1024 ones that is added to it in float changes nothing.
  tg::Array<float> x(Shape{std::size_t{1} << 17}, 1.0f);
  x(0) = 0x1p34f;
  const double expected = 0x1p34 + 0x1p17;
  CHECK(std::abs(tg::detail::sum_run(x.data(), x.size()) - expected) <= 2048);
  CHECK(std::abs(tg::sum(tg::Tensor<float>(x)).item() - expected) <= 2048);
  CHECK(std::abs(tg::mean(tg::Tensor<float>(x)).item() * 0x1p17 - expected) <= 2048);
}

TEST_CASE("Gradients are summed back to the shape that was stretched, and refused where it does not stretch") {
  Array sum(Shape{1, 3}, 1.0);
  tg::detail::add_summed(sum, Array{{1, 2, 3}, {4, 5, 6}});
  CHECK(sum == Array{{6, 8, 10}});
  tg::detail::add_summed(sum, Array{{{1, 2, 3}}, {{4, 5, 6}}});
  CHECK(sum == Array{{11, 15, 19}});
  CHECK_THROWS_WITH_AS(tg::detail::add_summed(sum, Array{{1, 2}, {3, 4}}),
                       "[backward] expected a gradient of shape (1, 3) or one that it broadcasts to, given (2, 2)",
                       std::logic_error);
  CHECK(sum == Array{{11, 15, 19}});
}
