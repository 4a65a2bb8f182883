/// Parameters: tensors changed by training.
#pragma once

#include <memory>
#include <utility>

#include "tensor.hpp"

namespace tapegrad {

template <class P> class ParameterHandle;

/// A tensor changed by training. Tapes and optimizers share its storage, a Variable. A copy is a new parameter with
/// the same numbers and name, without a gradient; they share the array until one is changed.
template <class T> class Parameter : public Tensor<T> {
 public:
  /// Undefined, like the bias of a Linear without one; traversals skip it.
  Parameter() = default;

  /// Starts with the expression's values.
  template <class E> explicit Parameter(const xt::xexpression<E>& expression) : Parameter(make_value<T>(expression)) {}
  /// Starts with the array, taking it over.
  explicit Parameter(Array<T>&& array) : Parameter(make_value<T>(std::move(array))) {}

  /// A new parameter with the same value and name, without a gradient.
  Parameter(const Parameter& other);
  /// Takes over the storage: its optimizers and tapes follow.
  Parameter(Parameter&& other) noexcept : Tensor<T>() { this->slot_ = std::move(other.slot_); }
  /// Copies the value. Tapes and handles still reach this parameter if the shape stays the same.
  Parameter& operator=(const Parameter& other);
  /// Takes over the storage with its gradient and hooks; only the value if the shapes are equal and this parameter has
  /// other owners, such as an optimizer, and the other one has none.
  Parameter& operator=(Parameter&& other) noexcept;
  ~Parameter() = default;

  /// Replaces the value. Throws std::invalid_argument if the shape differs.
  void set_value(Array<T> value);

  /// Replaces the value by a shared one, such as a tensor's shared_value(). The array must have been made non-const:
  /// mutable_value() changes it in place once it is the only owner. Throws like set_value, and if null.
  void share_value(Value<T> value);

  /// The value for changes in place, but not of its shape. Tapes and copies keep the old one.
  Array<T>& mutable_value();

  /// Replaces the gradient. Throws std::invalid_argument if the shape differs, std::logic_error if frozen.
  void set_grad(Array<T> grad);

  /// The gradient for changes in place, but not of its shape. Throws std::logic_error without a gradient.
  Array<T>& mutable_grad();

  /// Clears the gradient.
  void zero_grad() {
    if (this->slot_) this->variable().clear_grad();
  }

  /// False freezes the parameter: operations treat it as a constant, and it has no gradient. Throws std::logic_error
  /// if undefined.
  void set_requires_grad(bool requires_grad);

  /// The number of backward passes accumulated in the gradient.
  SweepCount sweeps() const { return this->slot_ ? this->variable().sweeps : SweepCount{}; }

  /// Unregisters all hooks; calls in progress finish.
  void remove_hooks() {
    if (this->slot_) this->variable().hooks.clear();
  }

 protected:
  /// Freezes the parameter and drops its value and gradient: it is undefined until set_value() or share_value(). For
  /// derived classes with another storage type.
  void release_value();

 private:
  template <class P> friend class ParameterHandle;

  explicit Parameter(Value<T> value) : Tensor<T>(std::make_shared<detail::Variable<T>>(value->shape(), value)) {}
  explicit Parameter(std::shared_ptr<detail::Variable<T>> variable) noexcept : Tensor<T>(std::move(variable)) {}

  detail::Variable<T>& defined_variable() const {
    if (!this->slot_) this->throw_undefined();
    return this->variable();
  }
  void replace(const char* operation, Value<T> value);
  void count_change();
};

}  // namespace tapegrad
