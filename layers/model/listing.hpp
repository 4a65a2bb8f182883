/// Printing a model as a nested listing.
#pragma once

#include <iosfwd>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "fields.hpp"

namespace tapegrad {

namespace detail {

/// What a walk over a model finds: a row for each struct, with its own numbers and parameters.
class Listing {
 public:
  void add_struct(const Path& path, const std::type_info& type);
  void add_parameter(const Path& path, const Shape& shape, const void* array);
  void add_setting(const Path& path, bool value);
  void add_setting(const Path& path, long long value);
  void add_setting(const Path& path, double value);

  void print(std::ostream& out) const;

 private:
  struct Row {
    std::string path, name, type, settings, shapes;
    std::size_t depth = 0, count = 0;
  };

  Row* owner(const std::string& path);
  void add_setting(const Path& path, const std::string& value);

  std::vector<Row> rows_;
  std::vector<std::pair<std::string, const void*>> arrays_;
};

}  // namespace detail

/// Prints a model's layers with their settings, the shapes of their parameters, and how many numbers these have:
///
///     Classifier
///       embedding   Embedding(padding_idx=0)  weight (26, 64)              1,664
///       attention   MultiHeadAttention(num_heads=8)
///         q_proj    Linear                    weight (64, 64), bias (64)   4,160
///         ...
///       head        Linear                    weight (3, 64), bias (3)       195
///     total                                                               18,499
///
/// Below it stands what began as a copy and has not been trained since, as the elements of std::vector<Block>(n,
/// Block(d)) do.
template <class M> void print(std::ostream& out, const M& model) {
  detail::Listing listing;
  detail::walk(model, [&]<class F>(const detail::Path& path, const F& field) {
    if constexpr (detail::HasFields<F>)
      listing.add_struct(path, typeid(F));
    else if constexpr (detail::is_parameter<F>)
      listing.add_parameter(path, field.shape(), field.value().data());
    else if constexpr (std::is_same_v<F, bool>)
      listing.add_setting(path, field);
    else if constexpr (std::is_floating_point_v<F>)
      listing.add_setting(path, static_cast<double>(field));
    else
      listing.add_setting(path, static_cast<long long>(field));
  });
  listing.print(out);
}

}  // namespace tapegrad
