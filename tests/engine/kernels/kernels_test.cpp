/// Internal loops at sizes that select different code paths: several threads, uneven parts, strides, and memory that
/// held NaN. All are compared with plain loops.
#include <tapegrad/engine/array/internal/parallel.hpp>
#include <tapegrad/engine/kernels/strided.hpp>

#include <atomic>

#include "close.hpp"
#include "poison.hpp"
#include "special_values.hpp"
#include "stepped.hpp"
#include "threads.hpp"

namespace tg = tapegrad;
using tg::Shape;
using tg::detail::InstructionSet;
using tg::detail::View;
using Array = tg::Array<double>;

namespace {

// The source element of a view's flat index.
std::ptrdiff_t place(const View& view, std::size_t flat) {
  std::ptrdiff_t at = view.offset;
  for (std::size_t axis = view.shape.size(); axis-- > 0; flat /= view.shape[axis])
    at += static_cast<std::ptrdiff_t>(flat % view.shape[axis]) * view.strides[axis];
  return at;
}

}  // namespace

// Tests the chunks of loops: vector lengths and remainders, and both ways to distribute them.
TEST_CASE("A loop's chunks cover every index once, in order within a chunk, for any number of threads and chunks") {
  for (const std::size_t threads : {1, 2, 3, 7}) {
    const Threads limit(threads);
    for (const std::size_t extent : {0, 1, 2, 63, 64, 65, 1000})
      for (const std::size_t chunks : {0, 1, 2, 3, 16, 63, 64, 65, 2000}) {
        INFO("threads = ", threads, ", extent = ", extent, ", chunks = ", chunks);
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

TEST_CASE("A nested loop runs on the calling thread, and all threads are available to the next loop") {
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

TEST_CASE("The division of work does not depend on the number of threads") {
  for (const std::size_t threads : {1, 2, 40}) {
    const Threads limit(threads);
    CHECK(tg::detail::chunks_for(0) == 1);
    CHECK(tg::detail::chunks_for(16384) == 1);
    CHECK(tg::detail::chunks_for(3 * 16384) == 3);
    CHECK(tg::detail::chunks_for(std::size_t{1} << 40) == 16);
  }
}

TEST_CASE_TEMPLATE("Views read and write the elements they show, and accumulate at every one of them", T, float,
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
      {{3, 40, 70}, {2800, 1, 40}, 5},    // transposes in strips, with a remainder and
      {{3, 40, 64}, {2800, 1, 40}, 5},    // without one
      {{6, 100, 150}, {0, 150, 1}, 9},    //
      {{100, 6, 150}, {150, 0, 1}, 9},    //
      {{1, 90000}, {0, 1}, 5},            //
      {{70000}, {0}, 3},                  //
      {{300, 300}, {0, 1}, 0},            // sums of columns
      {{300, 300}, {1, 0}, 0},            // sums of rows
      {{2000, 30}, {0, 1}, 5},            // sums of many slices, added in blocks
      {{40, 3, 60, 7}, {0, 7, 0, 1}, 5},  //
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
      poison(source.size() * sizeof(T));
      tg::detail::scatter_add(added.data(), added.size(), elements, view);
      check_close(added, sums, std::is_same_v<T, float> ? 1e-4 : 1e-12);
      if (!each_once) continue;
      tg::Array<T> overwritten = source;
      tg::detail::scatter(overwritten, elements, view);
      CHECK(tg::detail::gather(overwritten, view) == elements);
      for (std::size_t i = 0; i < source.size(); ++i)
        if (written[i]) overwritten.data()[i] = source.data()[i];
      CHECK(overwritten == source);  // nothing is written elsewhere
    }
}

TEST_CASE_TEMPLATE("Three operands broadcast along any axis match NumPy", T, float, double) {
  tg::manual_seed(3);
  const std::vector<std::array<Shape, 3>> shapes{
      {Shape{}, {}, {}},
      {Shape{5, 4}, {5, 4}, {5, 4}},
      {Shape{5, 4}, {}, {4}},
      {Shape{4}, {5, 1}, {}},
      {Shape{}, {5, 4}, {5, 1}},
      {Shape{2, 1, 4}, {3, 1}, {2, 3, 4}},
      {Shape{1}, {2, 3, 4}, {1, 3, 1}},
      {Shape{0, 3}, {1, 3}, {3}},
      {Shape{300, 300}, {300, 300}, {300, 300}},  // on several threads
      {Shape{300, 1}, {300}, {300, 300}},
  };
  for (const std::array<Shape, 3>& operands : shapes)
    for (const InstructionSet set : tg::detail::instruction_sets()) {
      const Shape &first = operands[0], &second = operands[1], &third = operands[2];
      INFO("first = ", tg::to_string(first), ", second = ", tg::to_string(second), ", third = ", tg::to_string(third),
           ", set = ", static_cast<int>(set));
      const UseInstructionSet use(set);
      const Threads limit(3);
      const tg::Array<T> x = tg::uniform<T>(first, -1, 1), y = tg::uniform<T>(second, -1, 1),
                         z = tg::uniform<T>(third, -1, 1);
      const Shape shape =
          tg::detail::broadcast_shapes("test", first, tg::detail::broadcast_shapes("test", second, third));
      const auto at = [&](const tg::Array<T>& array, std::size_t i) {
        return array.data()[place({shape, tg::detail::broadcast_strides(array.shape(), shape)}, i)];
      };
      tg::Array<T> expected(shape);
      for (std::size_t i = 0; i < expected.size(); ++i) expected.data()[i] = at(x, i) > 0 ? at(y, i) : at(z, i);
      poison(expected.size() * sizeof(T));
      CHECK(tg::detail::zip_all<T>(
                "test", [](T a, T b, T c) { return a > 0 ? b : c; }, x, y, z) == expected);
    }
}

TEST_CASE_TEMPLATE("amax over any axes returns the maximum, or NaN if there is one, on any number of threads", T, float,
                   double) {
  tg::manual_seed(4);
  for (const bool with_nan : {false, true})
    for (const Shape& shape : std::vector<Shape>{{}, {7}, {300, 310}, {1, 90000}, {90000, 1}, {40, 30, 67}}) {
      tg::Array<T> x = tg::uniform<T>(shape, -3, -1);
      for (std::size_t i = 5; with_nan && i < x.size(); i += 4999) x.data()[i] = static_cast<T>(kNaN);
      for (std::size_t reduced = 0; reduced < std::size_t{1} << shape.size(); ++reduced) {  // axis i if bit i is set
        Shape kept = shape;
        for (std::size_t axis = 0; axis < shape.size(); ++axis)
          if (reduced >> axis & 1) kept[axis] = 1;
        const View view{shape, tg::detail::broadcast_strides(kept, shape)};
        tg::Array<T> expected(kept, -std::numeric_limits<T>::infinity());
        for (std::size_t i = 0; i < x.size(); ++i) {
          T& largest = expected.data()[place(view, i)];
          if (x.data()[i] > largest || std::isnan(x.data()[i])) largest = x.data()[i];
        }
        for (const std::size_t threads : {1, 3}) {
          CAPTURE(tg::to_string(shape));
          CAPTURE(reduced);
          const Threads limit(threads);
          tg::Array<T> actual(kept, -std::numeric_limits<T>::infinity());
          tg::detail::take_largest(actual, x);
          const auto same = [](T a, T b) { return a == b || (std::isnan(a) && std::isnan(b)); };
          CHECK(std::equal(actual.begin(), actual.end(), expected.begin(), same));
        }
      }
    }
}

TEST_CASE_TEMPLATE("Runs of any length are summed completely", T, float, double) {
  tg::manual_seed(4);
  const tg::Array<T> x = tg::uniform<T>({5000}, -1, 1);
  for (const std::size_t length : {0, 1, 2, 31, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 5000}) {
    CAPTURE(length);
    double sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += x(i);
    CHECK(tg::detail::sum_run(x.data(), length) == doctest::Approx(sum).epsilon(1e-5));
  }
}

TEST_CASE("Sums of many floats are accurate to float's precision") {
  // Floats near 2^34 are 2048 apart: adding a block of 1024 ones to it in float changes nothing.
  tg::Array<float> x(Shape{std::size_t{1} << 17}, 1.0f);
  x(0) = 0x1p34f;
  const double expected = 0x1p34 + 0x1p17;
  CHECK(std::abs(tg::detail::sum_run(x.data(), x.size()) - expected) <= 2048);
  CHECK(std::abs(tg::sum(tg::Tensor<float>(x)).item() - expected) <= 2048);
  CHECK(std::abs(tg::mean(tg::Tensor<float>(x)).item() * 0x1p17 - expected) <= 2048);
}

TEST_CASE("The processor's best instruction set is selected unless a test selects another") {
  const std::vector<InstructionSet> sets = tg::detail::instruction_sets();
  CHECK(sets.front() == InstructionSet::baseline);
  CHECK(std::is_sorted(sets.begin(), sets.end()));
  CHECK(std::adjacent_find(sets.begin(), sets.end()) == sets.end());
  CHECK(tg::detail::instruction_set() == sets.back());
  for (const InstructionSet set : sets) {
    const UseInstructionSet use(set);
    CHECK(tg::detail::instruction_set() == set);
  }
  CHECK(tg::detail::instruction_set() == sets.back());
}

TEST_CASE_TEMPLATE("A loop gives the same result on every instruction set and visits each element once", T, float,
                   double) {
  for (const InstructionSet set : tg::detail::instruction_sets()) {
    CAPTURE(static_cast<int>(set));
    const UseInstructionSet use(set);
    for (const std::size_t size : kSizes) {
      CAPTURE(size);
      std::vector<T> x(size + 1, T(2));
      tg::detail::run_vectorized([&x, size] {
        for (std::size_t i = 0; i < size; ++i) x[i] = std::sqrt(x[i] + static_cast<T>(i)) / T(4) - x[i];
      });
      std::size_t right = 0;
      for (std::size_t i = 0; i < size; ++i)
        right += std::abs(x[i] - (std::sqrt(2.0 + static_cast<double>(i)) / 4 - 2)) < 1e-5;
      CHECK(right == size);
      CHECK(x[size] == T(2));  // memory after it is unchanged
    }
  }
}
