#include "from.hpp"

#include <algorithm>

#include "internal/error.hpp"
#include "internal/layout.hpp"

namespace tapegrad::detail {

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

}  // namespace tapegrad::detail
