#include "parameter.hpp"

#include <new>

#include "../array/internal/error.hpp"

namespace tapegrad {

using namespace detail;

// True if the array may be changed in place. Copying the pointer orders later writes after the reads of a thread that
// has released it, because libstdc++ counts with acquire and release; use_count() alone orders nothing.
template <class T> static bool is_only_owner(const std::shared_ptr<T>& array) {
  return std::shared_ptr<T>(array).use_count() == 2;
}

template <class T> Parameter<T>::Parameter(const Parameter& other) : Tensor<T>() { *this = other; }

template <class T> Parameter<T>& Parameter<T>::operator=(const Parameter& other) {
  if (this->slot_ == other.slot_) return *this;  // itself, or seen through a handle
  if (!other.slot_) {
    this->slot_.reset();
    return *this;
  }
  const Variable<T>& from = other.variable();
  if (this->slot_ && this->slot_->shape == from.shape) {
    this->variable().clear_grad();
    this->variable().value = from.value;
  } else {
    this->slot_ = std::make_shared<Variable<T>>(from.shape, from.value);
  }
  this->variable().requires_grad = from.requires_grad;
  if (this->variable().name.empty()) this->variable().name = from.name;
  return *this;
}

template <class T> Parameter<T>& Parameter<T>::operator=(Parameter&& other) noexcept {
  if (this == &other) return *this;
  const bool both = this->slot_ && other.slot_;
  const bool only_this_is_shared = both && this->slot_.use_count() > 1 && other.slot_.use_count() == 1;
  if (only_this_is_shared && this->slot_->shape == other.slot_->shape) {
    Variable<T>&to = this->variable(), &from = other.variable();
    to.clear_grad();
    to.value = std::move(from.value);
    to.requires_grad = from.requires_grad;
    if (!from.name.empty()) to.name = std::move(from.name);
    other.slot_.reset();
    return *this;
  }
  if (both && other.variable().name.empty()) try {
      other.variable().name = this->variable().name;
    } catch (const std::bad_alloc&) {  // stays unnamed: a move must not fail
    }
  this->slot_ = std::move(other.slot_);
  return *this;
}

template <class T> void Parameter<T>::count_change() {
  SweepCount& sweeps = defined_variable().sweeps;
  if (sweeps.before_change == 0) sweeps.before_change = sweeps.total;
}

template <class T> void Parameter<T>::set_value(Array<T> value) {
  replace("set_value", make_value<T>(std::move(value)));
}

template <class T> void Parameter<T>::share_value(Value<T> value) {
  require(value != nullptr, "share_value", "expected a value, got null");
  replace("share_value", std::move(value));
}

template <class T> void Parameter<T>::replace(const char* operation, Value<T> value) {
  require(value->shape() == defined_variable().shape, operation, "expected a value of the parameter's shape ",
          defined_variable().shape, ", got ", value->shape());
  defined_variable().value = std::move(value);
  count_change();
}

template <class T> Array<T>& Parameter<T>::mutable_value() {
  Value<T>& value = defined_variable().value;
  if (!value) this->throw_undefined();
  if (!is_only_owner(value)) value = make_value<T>(*value);
  count_change();
  return const_cast<Array<T>&>(*value);  // make_value made it mutable, and there is no other owner
}

template <class T> void Parameter<T>::set_grad(Array<T> grad) {
  require(grad.shape() == defined_variable().shape, "set_grad", "expected a gradient of the parameter's shape ",
          defined_variable().shape, ", got ", grad.shape());
  require_usage(defined_variable().requires_grad, "set_grad", "expected a parameter that requires a gradient, got ",
                *this, ", which is frozen; call set_requires_grad(true)");
  this->slot_->grad = make_value<T>(std::move(grad));
}

template <class T> Array<T>& Parameter<T>::mutable_grad() {
  std::shared_ptr<Array<T>>& grad = defined_variable().grad;
  require_usage(grad != nullptr, "mutable_grad", "expected a gradient, got ", *this, " without one; call set_grad()");
  if (!is_only_owner(grad)) grad = make_value<T>(*grad);
  return *grad;
}

template <class T> void Parameter<T>::release_value() {
  set_requires_grad(false);
  this->variable().value.reset();
}

template <class T> void Parameter<T>::set_requires_grad(bool requires_grad) {
  if (requires_grad) (void)this->defined_value();
  defined_variable().requires_grad = requires_grad;
  if (!requires_grad) this->variable().clear_grad();
}

template class Parameter<float>;
template class Parameter<double>;

}  // namespace tapegrad
