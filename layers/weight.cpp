#include "weight.hpp"

#include <algorithm>
#include <ostream>

#include "../engine/array/internal/error.hpp"
#include "../engine/kernels/instruction_sets.hpp"
#include "../engine/tape/print_values.hpp"

namespace tapegrad {

template <class T> void Weight<T>::hold_in_bfloat16() {
  if (is_in_bfloat16()) return;
  const Array<T>& value = this->value();
  const auto rounded = detail::make_pooled<Array<BFloat16>>(value.shape());
  const auto round = [from = value.data(), to = rounded->data()](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) to[i] = BFloat16::nearest(static_cast<float>(from[i]));
  };
  detail::parallel_vectorized(value.size(), round);
  this->release_value();
  bfloat16_ = Value<BFloat16>(rounded);
}

template <class T> const Value<BFloat16>& Weight<T>::shared_bfloat16() const& {
  detail::require_usage(is_in_bfloat16(), "bfloat16",
                        "expected a weight in bfloat16, got one of float or double; call hold_in_bfloat16() first");
  return bfloat16_;
}

template <class T> const Array<T>& Weight<T>::value() const& {
  detail::require_usage(!is_in_bfloat16(), "value", "expected a weight of float or double, got ", *this,
                        ", which is held in bfloat16; only linear and embedding read it");
  return Parameter<T>::value();
}

template <class T> std::ostream& operator<<(std::ostream& out, const Weight<T>& weight) {
  if (!weight.is_in_bfloat16()) return out << static_cast<const Tensor<T>&>(weight);
  Array<T> widened(weight.shape());
  std::copy(weight.bfloat16().begin(), weight.bfloat16().end(), widened.begin());
  return out << Tensor<T>(std::move(widened)) << " held in bfloat16";
}

template <class T>
Tensor<T> linear(const std::type_identity_t<Tensor<T>>& x, const Weight<T>& weight,
                 const std::type_identity_t<Tensor<T>>& bias) {
  if (weight.is_in_bfloat16()) return linear(x, weight.shared_bfloat16(), bias, weight.name());
  return linear(x, static_cast<const Tensor<T>&>(weight), bias);
}

template <class T>
Tensor<T> embedding(const Weight<T>& weight, const IntArray& ids, std::optional<std::int64_t> padding_idx) {
  if (weight.is_in_bfloat16()) return embedding<T>(weight.shared_bfloat16(), ids, weight.name());
  return embedding(static_cast<const Tensor<T>&>(weight), ids, padding_idx);
}

#define INSTANTIATE(T)                                                                \
  template struct Weight<T>;                                                          \
  template std::ostream& operator<<(std::ostream&, const Weight<T>&);                 \
  template Tensor<T> linear(const std::type_identity_t<Tensor<T>>&, const Weight<T>&, \
                            const std::type_identity_t<Tensor<T>>&);                  \
  template Tensor<T> embedding(const Weight<T>&, const IntArray&, std::optional<std::int64_t>);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
