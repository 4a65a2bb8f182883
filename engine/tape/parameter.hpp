/// Parameters, the tensors that training changes, and handles on them.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensor.hpp"

namespace tapegrad {

template <class P> class ParameterHandle;

/// A tensor that training changes. Its value and gradient live in one place, which recordings and an optimizer's
/// handles share. It is a value: a copy is another parameter, in a place of its own, that starts with the same numbers
/// and name and no gradient. Arrays are shared until one of the sharers is changed, so what a tape has saved never
/// changes.
template <class T> class Parameter : public Tensor<T> {
 public:
  /// No parameter, as a Linear without bias has none: walks over a model pass over it.
  Parameter() = default;

  /// Starts with the expression's values.
  template <class E> explicit Parameter(const xt::xexpression<E>& expression) : Parameter(make_value<T>(expression)) {}
  /// Starts with the array, which it takes over.
  explicit Parameter(Array<T>&& array) : Parameter(make_value<T>(std::move(array))) {}

  /// Another parameter with the same value and name, and no gradient.
  Parameter(const Parameter& other);
  /// Takes the other's place along: its optimizer and its recordings go on with this one.
  Parameter(Parameter&& other) noexcept : Tensor<T>(std::move(other.leaf_)) {}
  /// Takes over the other's value; recordings and handles of this parameter still reach it when the shape stays the
  /// same.
  Parameter& operator=(const Parameter& other);
  /// Takes the other's place along, gradient and hooks with it. Only where somebody else, such as an optimizer, holds
  /// this one's place and nobody the other's, and the shape stays the same, it takes the value alone, as a copy does.
  Parameter& operator=(Parameter&& other) noexcept;
  ~Parameter() = default;

  /// Replaces the value. Throws std::invalid_argument when the shape differs.
  void set_value(Array<T> value);

  /// Replaces the value by one that others may hold as well, such as a tensor's shared_value(); takes no memory.
  /// mutable_value() changes it in place once nobody else holds it, so it may not have been made as a constant. Throws
  /// as set_value, and for none, as a tensor that is held in bfloat16 has.
  void share_value(Value<T> value);

  /// Rounds the value to bfloat16 and holds that alone, in half the memory: for inference. linear and embedding take it
  /// for a constant weight; others find no value, and throw std::logic_error. Recordings keep the value they have. Its
  /// gradient is forgotten. set_value ends it, and so does loading; it stays frozen then.
  void hold_in_bfloat16();

  /// The value for changing in place; recordings and copies keep the old one. It keeps its shape: operations that are
  /// recorded and optimizers refuse a parameter whose value has got another one.
  Array<T>& mutable_value();

  /// Replaces the gradient. Throws std::invalid_argument when the shape differs, and std::logic_error for a parameter
  /// that is frozen.
  void set_grad(Array<T> grad);

  /// The gradient for changing in place; whoever shares it keeps the old one. It keeps its shape: sweeps and optimizers
  /// refuse another one. Throws std::logic_error when there is none.
  Array<T>& mutable_grad();

  /// Forgets the gradient.
  void zero_grad() {
    if (this->leaf_) this->leaf_->clear_grad();
  }

  /// Whether gradients are wanted; false freezes the parameter: operations take it for a constant, and it has no
  /// gradient. Throws std::logic_error for a parameter without a value, and for true where it is held in bfloat16.
  void set_requires_grad(bool requires_grad);

  /// How many sweeps its gradient comes from.
  SweepCount sweeps() const { return this->leaf_ ? this->leaf_->sweeps : SweepCount{}; }

  /// Removes all hooks; those that a sweep under way is calling are still called by it.
  void remove_hooks() {
    if (this->leaf_) this->leaf_->hooks.clear();
  }

 private:
  template <class P> friend class ParameterHandle;

  explicit Parameter(std::shared_ptr<Array<T>> value);
  explicit Parameter(std::shared_ptr<detail::Leaf<T>> leaf) noexcept : Tensor<T>(std::move(leaf)) {}

  detail::Leaf<T>& leaf() const {
    if (!this->leaf_) this->throw_undefined();
    return *this->leaf_;
  }
  void replace(const char* operation, Value<T> value);
  void count_change();
};

/// A handle on a parameter: `handle->grad()`. It holds the parameter's place and not its address, so it stays good
/// while the model moves, grows or is assigned to. P is Parameter<T> or const Parameter<T>.
template <class P> class ParameterHandle {
  using Parameter_ = std::remove_const_t<P>;
  using Leaf = detail::Leaf<typename P::value_type>;

 public:
  /// Holds the parameter's place.
  ParameterHandle(P& parameter) : parameter_(parameter.leaf_) {}
  /// The same: it is the place that is held, not the address. Throws std::invalid_argument for null.
  ParameterHandle(P* parameter) : parameter_((parameter == nullptr ? refuse_null() : *parameter).leaf_) {}
  /// Another handle on the same parameter.
  ParameterHandle(const ParameterHandle& other) : parameter_(other.parameter_.leaf_) {}
  /// The same of one that may change it.
  ParameterHandle(const ParameterHandle<Parameter_>& other) requires std::is_const_v<P>
      : parameter_(other.parameter_.leaf_) {}
  /// Holds the other's parameter from now on.
  ParameterHandle& operator=(const ParameterHandle& other) {
    parameter_.leaf_ = other.parameter_.leaf_;
    return *this;
  }
  ~ParameterHandle() = default;

  P& operator*() const { return parameter_; }    ///< the parameter
  P* operator->() const { return &parameter_; }  ///< the parameter

  /// The place that the parameter shares with recordings and other handles; for the library's own sources.
  const std::shared_ptr<Leaf>& place() const { return parameter_.leaf_; }

  /// Whether two handles hold the same parameter.
  bool operator==(const ParameterHandle& other) const { return place() == other.place(); }

  /// Whether nobody else holds the parameter: its model is gone, or was assigned another in its stead.
  bool is_last() const { return parameter_.leaf_.use_count() <= 1; }

 private:
  template <class Q> friend class ParameterHandle;

  [[noreturn]] static P& refuse_null() {
    throw std::invalid_argument("[ParameterHandle] expected a parameter, given a null pointer");
  }

  mutable Parameter_ parameter_;  // a second Parameter object on the same place
};

/// A model's parameters.
template <class T> using Parameters = std::vector<ParameterHandle<Parameter<T>>>;

/// A model's parameters with the names that reports and checkpoints use, in the order of its fields.
template <class T> using NamedParameters = std::vector<std::pair<std::string, ParameterHandle<Parameter<T>>>>;
/// Parameters of a model that is const, with their names.
template <class T>
using NamedConstParameters = std::vector<std::pair<std::string, ParameterHandle<const Parameter<T>>>>;

}  // namespace tapegrad
