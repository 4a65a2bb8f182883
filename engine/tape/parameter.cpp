#include "parameter.hpp"

#include <new>

#include "../array/internal/error.hpp"
#include "../array/internal/parallel.hpp"
#include "../kernels/instruction_sets.hpp"

namespace tapegrad {
namespace {

// Whether nobody else holds an array, which may be written to then. Copying the handle is what orders the writes that
// follow behind the reads of a thread that has let it go: use_count() by itself orders nothing. In libstdc++ copying
// does, since it counts with acquire and release; by the standard it need not, and a fence would do, which
// ThreadSanitizer does not know.
template <class T> bool is_held_alone(const std::shared_ptr<T>& array) {
  return std::shared_ptr<T>(array).use_count() == 2;
}

}  // namespace

using detail::Leaf;
using detail::require;

template <class T>
Parameter<T>::Parameter(std::shared_ptr<Array<T>> value)
    : Parameter(std::make_shared<Leaf<T>>(Leaf<T>{.shape = value->shape(), .value = value})) {}

template <class T> Parameter<T>::Parameter(const Parameter& other) : Tensor<T>() { *this = other; }

template <class T> Parameter<T>& Parameter<T>::operator=(const Parameter& other) {
  if (this->leaf_ == other.leaf_) return *this;  // itself, or seen through a handle
  if (!other.leaf_) {
    this->leaf_.reset();
    return *this;
  }
  const Leaf<T>& from = *other.leaf_;
  if (this->leaf_ && this->leaf_->shape == from.shape) {
    this->leaf_->clear_grad();
    this->leaf_->value = from.value;
    this->leaf_->bfloat16 = from.bfloat16;
    this->leaf_->requires_grad = from.requires_grad;
    if (this->leaf_->name.empty()) this->leaf_->name = from.name;
  } else {
    this->leaf_ = std::make_shared<Leaf<T>>(Leaf<T>{.shape = from.shape,
                                                    .value = from.value,
                                                    .bfloat16 = from.bfloat16,
                                                    .requires_grad = from.requires_grad,
                                                    .name = from.name});
  }
  return *this;
}

template <class T> Parameter<T>& Parameter<T>::operator=(Parameter&& other) noexcept {
  if (this == &other) return *this;
  Leaf<T>* const to = this->leaf_.get();
  Leaf<T>* const from = other.leaf_.get();
  const bool only_this_is_held = to && from && this->leaf_.use_count() > 1 && other.leaf_.use_count() == 1;
  if (only_this_is_held && to->shape == from->shape) {
    to->clear_grad();
    to->value = std::move(from->value);
    to->bfloat16 = std::move(from->bfloat16);
    to->requires_grad = from->requires_grad;
    if (!from->name.empty()) to->name = std::move(from->name);
    other.leaf_.reset();
    return *this;
  }
  if (to && from && from->name.empty()) try {
      from->name = to->name;
    } catch (const std::bad_alloc&) {  // without a name then: a move may not fail
    }
  this->leaf_ = std::move(other.leaf_);
  return *this;
}

template <class T> void Parameter<T>::count_change() {
  SweepCount& sweeps = leaf().sweeps;
  if (sweeps.before_change == 0) sweeps.before_change = sweeps.total;
}

template <class T> void Parameter<T>::set_value(Array<T> value) {
  replace("set_value", make_value<T>(std::move(value)));
}

template <class T> void Parameter<T>::share_value(Value<T> value) {
  require(value != nullptr, "share_value", "expected a value, given none");
  replace("share_value", std::move(value));
}

template <class T> void Parameter<T>::replace(const char* operation, Value<T> value) {
  require(value->shape() == leaf().shape, operation, "expected a value of the parameter's shape ", leaf().shape,
          ", given ", value->shape());
  leaf().value = std::move(value);
  leaf().bfloat16.reset();
  count_change();
}

template <class T> void Parameter<T>::hold_in_bfloat16() {
  if (this->is_in_bfloat16()) return;
  const Array<T>& value = this->value();
  const auto rounded = detail::make_pooled<Array<BFloat16>>(value.shape());
  detail::parallel_for(value.size(), detail::chunks_for(value.size()),
                       [from = value.data(), to = rounded->data()](std::size_t begin, std::size_t end) {
                         detail::run_vectorized([=] {
                           for (std::size_t i = begin; i < end; ++i)
                             to[i] = BFloat16::nearest(static_cast<float>(from[i]));
                         });
                       });
  set_requires_grad(false);
  leaf().bfloat16 = rounded;
  leaf().value.reset();
}

template <class T> Array<T>& Parameter<T>::mutable_value() {
  static_cast<void>(this->value());  // which throws where there is none
  Value<T>& value = leaf().value;
  if (!is_held_alone(value)) value = make_value<T>(*value);
  count_change();
  return const_cast<Array<T>&>(*value);  // made as a mutable Array by make_value, and nobody else sees it
}

template <class T> void Parameter<T>::set_grad(Array<T> grad) {
  require(grad.shape() == leaf().shape, "set_grad", "expected a gradient of the parameter's shape ", leaf().shape,
          ", given ", grad.shape());
  detail::require_usage(leaf().requires_grad, "set_grad", "expected a parameter that wants a gradient, given ", *this,
                        ", which is frozen");
  leaf().grad = make_value<T>(std::move(grad));
}

template <class T> Array<T>& Parameter<T>::mutable_grad() {
  std::shared_ptr<Array<T>>& grad = leaf().grad;
  detail::require_usage(grad != nullptr, "mutable_grad", "expected a parameter with a gradient, given ", *this,
                        " without one");
  if (!is_held_alone(grad)) grad = make_value<T>(*grad);
  return *grad;
}

template <class T> void Parameter<T>::set_requires_grad(bool requires_grad) {
  detail::require_usage(!requires_grad || !this->is_in_bfloat16(), "set_requires_grad",
                        "expected a parameter that can be trained, given ", *this, ", which is held in bfloat16");
  leaf().requires_grad = requires_grad;
  if (!requires_grad) leaf().clear_grad();
}

template class Parameter<float>;
template class Parameter<double>;

}  // namespace tapegrad
