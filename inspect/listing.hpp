/// Printing a model as a nested listing.
#pragma once

#include <array>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "../layers/model/fields.hpp"

namespace tapegrad {

namespace detail {

/// Collects a row for each struct, with its own numbers, parameters and arrays.
class Listing {
 public:
  void add_struct(const Path& path, const std::type_info& type);
  void add_parameter(const Path& path, const Shape& shape, const void* array);
  void add_array(const Path& path, const Shape& shape);
  void add_number(const Path& path, const std::string& number);

  void print(std::ostream& out) const;

 private:
  struct Row {
    std::string path, name, type, numbers, shapes;
    std::size_t depth = 0, count = 0;
  };

  Row* owner(const std::string& path);

  std::vector<Row> rows_;
  std::vector<std::pair<std::string, const void*>> arrays_;
};

std::string number_text(bool value);
std::string number_text(long long value);
std::string number_text(unsigned long long value);
std::string number_text(double value);

template <Number N> std::string number_text(N value) {
  if constexpr (std::is_floating_point_v<N>)
    return number_text(static_cast<double>(value));
  else if constexpr (std::is_signed_v<N>)
    return number_text(static_cast<long long>(value));
  else
    return number_text(static_cast<unsigned long long>(value));
}

template <class F> inline constexpr bool is_number_array = false;
template <Number N, std::size_t M> inline constexpr bool is_number_array<std::array<N, M>> = true;

/// The row's text for a field or setting other than a layer: numbers and std::arrays of numbers by value, arrays by
/// shape. Others are skipped.
template <class F> void list_value(Listing& listing, const Path& path, const F& value) {
  if constexpr (HasStorage<F>) {
    if (!FieldStorage<F>::has(value)) return;
  }
  if constexpr (Number<F>) {
    listing.add_number(path, number_text(value));
  } else if constexpr (is_optional<F>) {
    if (value) list_value(listing, path, *value);
  } else if constexpr (requires { listing.add_array(path, value.shape()); }) {
    listing.add_array(path, value.shape());
  } else if constexpr (is_number_array<F>) {
    std::string list;
    for (const auto number : value) list += (list.empty() ? "" : ", ") + number_text(number);
    listing.add_number(path, '(' + list + ')');
  }
}

/// The address of the numbers, shared by copies.
const void* numbers_of(const auto& parameter) {
  if constexpr (requires { parameter.bfloat16(); })
    if (parameter.is_in_bfloat16()) return parameter.bfloat16().data();
  return parameter.value().data();
}

}  // namespace detail

/// Prints a model's layers with their settings, the shapes of their parameters and the number of elements:
///
///     Classifier
///       embedding   Embedding(padding_idx=0)  weight (26, 64)              1,664
///       attention   MultiHeadAttention(num_heads=8, num_kv_heads=8)
///         q_proj    Linear                    weight (64, 64), bias (64)   4,160
///         ...
///       head        Linear                    weight (3, 64), bias (3)       195
///     total                                                               18,499
///
/// Then lists untrained copies, such as the elements of std::vector<Block>(n, Block(d)).
template <detail::ModelArgument M> void print(std::ostream& out, const M& model) {
  detail::Listing listing;
  detail::walk(model, [&]<class F>(const detail::Path& path, const F& field) {
    if constexpr (detail::HasList<F>)
      listing.add_struct(path, typeid(F));
    else if constexpr (detail::is_parameter<F>)
      listing.add_parameter(path, field.shape(), detail::numbers_of(field));
    else if constexpr (detail::is_setting<F>)
      detail::list_value(listing, path, field.value);
    else
      detail::list_value(listing, path, field);
  });
  listing.print(out);
}

}  // namespace tapegrad
