// Rows of arrays, mini-batches, padding and ranges of integers.
#include <xtensor/xview.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>

#include "refused.hpp"

namespace tg = tapegrad;

namespace {

using Lists = std::vector<std::vector<int>>;

std::vector<std::size_t> sizes_of(const std::vector<tg::IntArray>& batches) {
  std::vector<std::size_t> sizes;
  for (const tg::IntArray& batch : batches) sizes.push_back(batch.size());
  return sizes;
}

}  // namespace

TEST_CASE_TEMPLATE("rows selects slices along the first axis, of any type and number of axes", T, float, double, int,
                   std::int64_t, bool) {
  const tg::Array<T> x = xt::cast<T>(tg::int_array({{{1, 0}, {0, 1}}, {{0, 0}, {1, 1}}, {{1, 1}, {0, 0}}}));
  const tg::Array<T> chosen = tg::rows(x, {2, 0, 2});
  CHECK(chosen.shape() == tg::Shape{3, 2, 2});
  for (const std::size_t i : {0, 2}) CHECK((tg::Array<T>(xt::view(chosen, i)) == tg::Array<T>(xt::view(x, 2))));
  CHECK((tg::Array<T>(xt::view(chosen, 1)) == tg::Array<T>(xt::view(x, 0))));
  CHECK((tg::rows(tg::Array<T>{T(1), T(0), T(1)}, {1, 2, 2}) == tg::Array<T>{T(0), T(1), T(1)}));
}

TEST_CASE("rows takes an index of any shape, and expressions, also of width 0, one row, and none") {
  const tg::Array<double> x{{1, 2}, {3, 4}, {5, 6}};
  CHECK(tg::rows(x, tg::int_array({{0, 1}, {2, 2}})) == tg::Array<double>{{{1, 2}, {3, 4}}, {{5, 6}, {5, 6}}});
  CHECK(tg::rows(x, tg::IntArray(tg::Shape{}, 1)) == tg::Array<double>{3, 4});
  CHECK(tg::rows(x, xt::view(tg::random_permutation(3), xt::range(0, 0))).shape() == tg::Shape{0, 2});
  CHECK(tg::rows(2 * x, tg::arange(1, 2)) == tg::Array<double>{{6, 8}});
  CHECK(tg::rows(xt::view(x, xt::all(), 1), tg::arange(2)) == tg::Array<double>{2, 4});
  CHECK(tg::rows(tg::Array<float>(tg::Shape{3, 0}), {2, 2}).shape() == tg::Shape{2, 0});
  CHECK(tg::rows(tg::Array<float>{7}, tg::int_array({0})) == tg::Array<float>{7});
  CHECK(tg::rows(tg::Array<float>(tg::Shape{0, 4}), tg::int_array({})).shape() == tg::Shape{0, 4});
}

TEST_CASE("rows refuses indices outside the array, scalars and results beyond memory") {
  const tg::Array<int> labels{0, 1, 2, 3, 4};
  for (const auto& [index, wrong] : {std::pair(tg::IntArray{1, 9}, "9"), {{5, 0}, "5"}, {{0, -1}, "-1"}}) {
    const std::string message =
        std::string("[rows] expected indices from 0 to 4 of an array of shape (5), got ") + wrong;
    CHECK_THROWS_WITH_AS(tg::rows(labels, index), message.c_str(), std::out_of_range);
  }
  CHECK_THROWS_WITH_AS(tg::rows(tg::Array<int>(tg::Shape{0, 2}), tg::int_array({0})),
                       "[rows] expected indices from 0 to -1 of an array of shape (0, 2), got 0", std::out_of_range);
  CHECK_THROWS_WITH_AS(tg::rows(tg::Array<int>(tg::Shape{}, 1), tg::int_array({0})),
                       "[rows] expected an array with at least one axis, got shape ()", std::invalid_argument);
  const tg::Array<double> empty(tg::Shape{2, 0, std::size_t{1} << 59});
  CHECK_THROWS_WITH_AS(tg::rows(empty, tg::arange(0, 2) * 0 + tg::int_array({{0}, {1}})),
                       "[rows] expected a result that fits in memory, got shape (2, 2, 0, 576460752303423488)",
                       std::invalid_argument);
}

TEST_CASE("batches cut a random permutation into pieces") {
  tg::Generator generator(3), same(3);
  const std::vector<tg::IntArray> batches = tg::batches(10, 4, generator);
  CHECK(sizes_of(batches) == std::vector<std::size_t>{4, 4, 2});
  std::vector<std::int64_t> joined;
  for (const tg::IntArray& batch : batches) joined.insert(joined.end(), batch.begin(), batch.end());
  CHECK(tg::int_array(joined) == tg::random_permutation(10, same));
  CHECK(generator == same);
  CHECK(tg::batches(10, 4, generator) != batches);  // the next epoch

  tg::manual_seed(3);
  CHECK(tg::batches(10, 4) == batches);
  std::int64_t sum = 0;
  for (const auto& rows : tg::batches(10, 3)) sum += xt::sum(tg::rows(tg::arange(10), rows))();
  CHECK(sum == 45);
}

TEST_CASE("The last batch is whole if the size divides the count, and one batch takes a larger size") {
  CHECK(sizes_of(tg::batches(8, 4)) == std::vector<std::size_t>{4, 4});
  CHECK(sizes_of(tg::batches(3, 1)) == std::vector<std::size_t>{1, 1, 1});
  CHECK(sizes_of(tg::batches(3, std::numeric_limits<std::size_t>::max())) == std::vector<std::size_t>{3});
  CHECK(tg::batches(1, 5) == std::vector<tg::IntArray>{tg::int_array({0})});
  CHECK(tg::batches(0, 5).empty());
  check_refused_unchanged("batches", {"a size of at least 1, got 0"}, [] { tg::batches(3, 0); });
}

TEST_CASE("pad makes one array of sequences, also of none or empty ones, and lengths tells them from their padding") {
  const Lists lists{{1, 2, 3}, {}, {4}};
  CHECK(tg::pad(lists, -1) == tg::IntArray{{1, 2, 3}, {-1, -1, -1}, {4, -1, -1}});
  CHECK(tg::lengths(lists) == tg::IntArray{3, 0, 1});
  CHECK(tg::pad({{1, 2}, {3}}, 0) == tg::IntArray{{1, 2}, {3, 0}});
  CHECK(tg::lengths({{1, 2}, {3}}) == tg::IntArray{2, 1});
  CHECK(tg::pad(std::vector<std::list<short>>{{5}}, 0) == tg::int_array({{5}}));
  CHECK(tg::pad(std::vector<tg::IntArray>{{1, 2}, {3, 4}}, 0) == tg::IntArray{{1, 2}, {3, 4}});
  CHECK(tg::pad(Lists{}, 0).shape() == tg::Shape{0, 0});
  CHECK(tg::pad(Lists{{}, {}}, 0).shape() == tg::Shape{2, 0});
  CHECK(tg::lengths(Lists{}).shape() == tg::Shape{0});
  CHECK(tg::lengths(Lists{{}}) == tg::int_array({0}));
}

TEST_CASE("arange counts from 0 or from the first number to before the last") {
  CHECK(tg::arange(4) == tg::IntArray{0, 1, 2, 3});
  CHECK(tg::arange(-2, 2) == tg::IntArray{-2, -1, 0, 1});
  CHECK(tg::arange(7, 8) == tg::int_array({7}));
  CHECK(tg::arange(0).shape() == tg::Shape{0});
  CHECK(tg::arange(5, 5).shape() == tg::Shape{0});
  CHECK_THROWS_WITH_AS(tg::arange(3, 1), "[arange] expected first <= last, got 3 and 1", std::invalid_argument);
  CHECK_THROWS_WITH_AS(tg::arange(-1), "[arange] expected first <= last, got 0 and -1", std::invalid_argument);
  using Limits = std::numeric_limits<std::int64_t>;
  check_refused("arange", "at most 1152921504606846975 elements", [] { tg::arange(Limits::min(), Limits::max()); });
}
