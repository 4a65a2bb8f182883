/// Weights that can be stored in bfloat16, in half the memory of float.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "../engine/array/bfloat16.hpp"
#include "../engine/array/pool.hpp"
#include "../engine/ops/ops.hpp"
#include "../engine/tape/parameter_handle.hpp"
#include "model/fields.hpp"

namespace tapegrad {

/// The weight of a Linear or an Embedding: a parameter, or a frozen weight stored only in bfloat16, without a value.
/// The overloads of linear and embedding below read both. Copies share the numbers.
template <class T> struct Weight : Parameter<T> {
  using Parameter<T>::Parameter;
  /// Undefined.
  Weight() = default;
  /// Takes over a parameter.
  Weight(Parameter<T> parameter) noexcept : Parameter<T>(std::move(parameter)) {}
  /// Assigns to the parameter.
  template <class P>
  requires std::same_as<std::remove_cvref_t<P>, Parameter<T>> Weight& operator=(P&& other) {
    Parameter<T>::operator=(std::forward<P>(other));
    bfloat16_ = nullptr;
    return *this;
  }

  /// Rounds the value to bfloat16 and drops it with its gradient; the weight is then frozen. set_value(), share_value()
  /// and load() give it a value again, still frozen.
  void hold_in_bfloat16();
  bool is_in_bfloat16() const { return bfloat16_ && !Parameter<T>::defined(); }  ///< true if only bfloat16 is stored
  const Array<BFloat16>& bfloat16() const& { return *shared_bfloat16(); }  ///< throws std::logic_error for a parameter
  /// The same, shared. Throws std::logic_error for a parameter.
  const Value<BFloat16>& shared_bfloat16() const&;

  bool defined() const { return Parameter<T>::defined() || bfloat16_; }  ///< false only without any numbers
  /// The value. Throws std::logic_error if it is stored in bfloat16, like all of Parameter's members that need it.
  const Array<T>& value() const&;
  Array<T> value() const&& { return static_cast<const Weight&>(*this).value(); }                         ///< a copy
  const Shape& shape() const& { return is_in_bfloat16() ? bfloat16_->shape() : Parameter<T>::shape(); }  ///< (out, in)
  Shape shape() const&& { return static_cast<const Weight&>(*this).shape(); }                            ///< a copy
  std::size_t dimension() const { return shape().size(); }                                          ///< number of axes
  std::size_t size() const { return is_in_bfloat16() ? bfloat16_->size() : Parameter<T>::size(); }  ///< of elements

  /// Like Parameter::set_value. Drops the bfloat16 numbers.
  void set_value(Array<T> value) {
    Parameter<T>::set_value(std::move(value));
    bfloat16_ = nullptr;
  }
  /// Like Parameter::share_value. Drops the bfloat16 numbers.
  void share_value(Value<T> value) {
    Parameter<T>::share_value(std::move(value));
    bfloat16_ = nullptr;
  }

 private:
  Value<BFloat16> bfloat16_ = nullptr;  // stale if a handle has set the parameter's value since
};

/// @cond
// A handle to a Weight is a handle to its parameter.
template <class T> ParameterHandle(Weight<T>&) -> ParameterHandle<Parameter<T>>;
template <class T> ParameterHandle(Weight<T>*) -> ParameterHandle<Parameter<T>>;
template <class T> ParameterHandle(const Weight<T>&) -> ParameterHandle<const Parameter<T>>;
template <class T> ParameterHandle(const Weight<T>*) -> ParameterHandle<const Parameter<T>>;
/// @endcond

/// Name and shape, for errors: "layer.weight (12, 12)".
template <class T> std::string described(const Weight<T>& weight) {
  if (!weight.is_in_bfloat16()) return described(static_cast<const Tensor<T>&>(weight));
  const std::string name = weight.name();
  return (name.empty() ? "" : name + ' ') + to_string(weight.shape());
}

/// Prints the numbers.
template <class T> std::ostream& operator<<(std::ostream& out, const Weight<T>& weight);

/// x W^T + b
template <class T>
Tensor<T> linear(const std::type_identity_t<Tensor<T>>& x, const Weight<T>& weight,
                 const std::type_identity_t<Tensor<T>>& bias = {});

/// Rows of the weight.
template <class T>
Tensor<T> embedding(const Weight<T>& weight, const IntArray& ids, std::optional<std::int64_t> padding_idx = {});

/// Stores every Weight in the model (of Linears and Embeddings) in bfloat16, for inference or for training the other
/// parameters. They take half the memory, and generating one token at a time takes about half the time, because it is
/// bound by reading them. Biases, norms and low-rank updates keep their type. Gradients flow through these weights, not
/// to them; parameters() and named_parameters() omit them, count_parameters() counts them. A tied head,
/// tg::linear(x, embedding.weight), stores one copy. save() then throws std::logic_error: save the model before.
template <detail::ModelArgument M> void hold_in_bfloat16(M& model) {
  detail::for_each_parameter(model, [](const detail::Path&, auto& parameter) {
    if constexpr (requires { parameter.hold_in_bfloat16(); }) parameter.hold_in_bfloat16();
  });
  detail::pool_release_idle();
}

}  // namespace tapegrad
