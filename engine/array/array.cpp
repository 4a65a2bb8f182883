#include "array.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "batches.hpp"
#include "internal/layout.hpp"

namespace tapegrad {

// ---- shapes --------------------------------------------------------------------------------------------------------

namespace {

template <class Integers> std::string in_parentheses(const Integers& integers) {
  std::string text = "(";
  for (std::size_t i = 0; i < integers.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(integers[i]);
  return text + ")";
}

}  // namespace

std::string to_string(const Shape& shape) { return in_parentheses(shape); }
std::string to_string(const IntList& list) { return in_parentheses(list); }

std::size_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

namespace detail {

std::size_t normalize_axis(const char* operation, std::ptrdiff_t axis, std::size_t dimension) {
  const auto axes = static_cast<std::ptrdiff_t>(dimension);
  require(
      -axes <= axis && axis < axes, operation, "expected an axis of an array with ", dimension, " axes",
      [&] { return dimension == 0 ? "" : ", from " + std::to_string(-axes) + " to " + std::to_string(axes - 1); },
      "; got ", axis);
  return static_cast<std::size_t>(axis < 0 ? axis + axes : axis);
}

std::ptrdiff_t differing_axis(const Shape& a, const Shape& b) {
  for (std::size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const std::size_t m = a[a.size() - i], n = b[b.size() - i];
    if (m != n && m != 1 && n != 1) return -static_cast<std::ptrdiff_t>(i);
  }
  return 0;
}

Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b) {
  require_broadcast(operation, a, b);
  Shape out = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  std::transform(shorter.rbegin(), shorter.rend(), out.rbegin(), out.rbegin(),
                 [](std::size_t m, std::size_t n) { return n == 1 ? m : n; });
  return out;
}

Shape index_of(std::size_t flat, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; flat /= shape[axis]) index[axis] = flat % shape[axis];
  return index;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  return from.size() <= to.size() && std::equal(from.rbegin(), from.rend(), to.rbegin(),
                                                [](std::size_t m, std::size_t n) { return m == n || m == 1; });
}

bool addressable(const Shape& shape, std::size_t element_size) {
  std::size_t room = std::numeric_limits<std::ptrdiff_t>::max() / element_size;
  for (const std::size_t extent : shape) {
    if (extent > room) return false;
    room /= std::max<std::size_t>(extent, 1);
  }
  return true;
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides(shape.size());
  std::exclusive_scan(shape.rbegin(), shape.rend(), strides.rbegin(), std::ptrdiff_t{1}, std::multiplies<>());
  return strides;
}

Strides broadcast_strides(const Shape& from, const Shape& to) {
  const Strides own = contiguous_strides(from);
  Strides strides(to.size(), 0);
  const std::size_t lead = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) strides[lead + i] = from[i] == to[lead + i] ? own[i] : 0;
  return strides;
}

// ---- arrays from braces and ranges ---------------------------------------------------------------------------------

template <class T> Braces<T>::Braces(std::initializer_list<Braces> rows) : shape_{rows.size()} {
  if (rows.size() == 0) return;
  const Shape& first = rows.begin()->shape_;
  shape_.insert(shape_.end(), first.begin(), first.end());
  for (const Braces& row : rows) {
    require(row.shape_ == first, std::is_same_v<T, std::int64_t> ? "int_array" : "array",
            "expected rows of equal shape in the braces, got ", first, " and ", row.shape_);
    numbers_.insert(numbers_.end(), row.numbers_.begin(), row.numbers_.end());
  }
}

template <class T> Array<T> Braces<T>::array() const {
  Array<T> out(shape_);
  std::ranges::copy(numbers_, out.data());
  return out;
}

void require_count(const char* operation, std::size_t count, const Shape& shape) {
  require(addressable(shape, sizeof(double)) && count == element_count(shape), operation,
          "expected as many numbers as the shape has elements, got ", count, " for ", shape);
}

template class Braces<float>;
template class Braces<double>;
template class Braces<std::int64_t>;
template class Braces<bool>;

// ---- batches.hpp ---------------------------------------------------------------------------------------------------

Shape shape_of_rows(const Shape& shape, const IntArray& order, std::size_t element_size) {
  require(!shape.empty(), "rows", "expected an array with at least one axis, got shape ", shape);
  for (const std::int64_t row : order)
    require_in_range(row >= 0 && static_cast<std::size_t>(row) < shape[0], "rows", "expected indices from 0 to ",
                     static_cast<std::ptrdiff_t>(shape[0]) - 1, " of an array of shape ", shape, ", got ", row);
  Shape out = order.shape();
  out.insert(out.end(), shape.begin() + 1, shape.end());
  require(addressable(out, element_size), "rows", "expected a result that fits in memory, got shape ", out);
  return out;
}

IntArray padded(std::size_t rows, std::size_t columns, std::int64_t padding) {
  auto out = uninitialized<std::int64_t>("pad", {rows, columns});
  out.fill(padding);
  return out;
}

}  // namespace detail

std::vector<IntArray> batches(std::size_t count, std::size_t size, Generator& generator) {
  detail::require(size > 0, "batches", "expected a size of at least 1, got ", size);
  const IntArray order = random_permutation(count, generator);
  std::vector<IntArray> out;
  for (auto left = std::span(order.data(), count); !left.empty(); left = left.subspan(out.back().size()))
    out.push_back(int_array(left.first(std::min(size, left.size()))));
  return out;
}

IntArray arange(std::int64_t first, std::int64_t last) {
  detail::require(first <= last, "arange", "expected first <= last, got ", first, " and ", last);
  auto out =
      detail::uninitialized<std::int64_t>("arange", {static_cast<std::size_t>(last) - static_cast<std::size_t>(first)});
  std::iota(out.begin(), out.end(), first);
  return out;
}

}  // namespace tapegrad
