#include "read_safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "internal/tensor_file.hpp"

namespace tapegrad {
namespace detail {

std::map<std::string, StoredArray> read_arrays(TensorFile&& file) {
  std::map<std::string, StoredArray> arrays;
  for (const auto& [name, tensor] : file.tensors())
    arrays.emplace(name, StoredArray(name, tensor.dtype, tensor.shape, file.share(name, tensor)));
  return arrays;
}

namespace {

constexpr const char* kOperation = "read_safetensors";

// Calls function with a value of the file's integer type, one that converts() to another.
template <class Function> void with_integer(Dtype dtype, const Function& function) {
  const auto call_if_equal = [&]<class Integer>(Integer value) {
    if (dtype == dtype_of<Integer>()) function(value);
  };
  const auto call = [&](auto... values) { (call_if_equal(values), ...); };
  call(std::uint8_t{}, std::int8_t{}, std::uint16_t{}, std::int16_t{}, std::uint32_t{}, std::int32_t{}, std::uint64_t{},
       std::int64_t{});
}

// Converts all numbers, or only those that fit.
bool converts(Dtype from, Dtype to) {
  const bool has_bool = from == Dtype::BOOL || to == Dtype::BOOL;
  return has_bool ? from == to : is_floating(from) == is_floating(to);
}

}  // namespace
}  // namespace detail

std::map<std::string, StoredArray> read_safetensors(const std::filesystem::path& path) {
  return detail::read_arrays(detail::TensorFile(detail::kOperation, path));
}

std::map<std::string, StoredArray> read_safetensors(std::span<const std::byte> bytes) {
  return detail::read_arrays(detail::TensorFile(detail::kOperation, bytes));
}

StoredArray::StoredArray(const std::string& name, detail::Dtype dtype, const Shape& shape,
                         std::shared_ptr<const std::byte> bytes)
    : name_(name), dtype_(dtype), shape_(shape), bytes_(std::move(bytes)) {}

std::string_view StoredArray::dtype() const { return detail::info_of(dtype_).torch_name; }

template <class Stored, class T> void StoredArray::convert_integers(Array<T>& to) const {
  for (std::size_t i = 0; i < to.size(); ++i) {
    Stored number;
    std::memcpy(&number, bytes_.get() + i * sizeof(Stored), sizeof(Stored));
    if (!std::in_range<T>(number))
      detail::fail<std::invalid_argument>(detail::kOperation, "expected ", detail::quoted(name_), " of numbers from ",
                                          +std::numeric_limits<T>::min(), " to ", +std::numeric_limits<T>::max(),
                                          ", got ", +number);
    to.data()[i] = static_cast<T>(number);
  }
}

template <detail::Number T> Array<T> StoredArray::as() const {
  constexpr detail::Dtype wanted = detail::dtype_of<T>();
  detail::require_usage(bytes_ != nullptr, detail::kOperation, "expected an array of a file, got a moved-from one");
  if (!detail::converts(dtype_, wanted))
    detail::fail<std::invalid_argument>(detail::kOperation, "expected ", detail::quoted(name_),
                                        " of numbers that convert to ", detail::info_of(wanted).torch_name, ", got ",
                                        dtype());
  Array<T> array(shape_);
  if constexpr (std::is_same_v<T, bool>) {
    std::copy_n(reinterpret_cast<const bool*>(bytes_.get()), array.size(), array.data());
  } else if constexpr (std::is_floating_point_v<T>) {
    detail::convert_floats(dtype_, bytes_.get(), array.size(), array.data());
  } else {
    detail::with_integer(dtype_, [&](auto stored) { convert_integers<decltype(stored)>(array); });
  }
  return array;
}

#define INSTANTIATE(T) template Array<T> StoredArray::as<T>() const;
TAPEGRAD_EACH_NUMBER(INSTANTIATE)

}  // namespace tapegrad
