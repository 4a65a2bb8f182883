#include "tensor.hpp"

#include <ostream>

#if __has_include(<xtensor/io/xio.hpp>)
#include <xtensor/io/xio.hpp>
#else
#include <xtensor/xio.hpp>
#endif

#include "../array/internal/error.hpp"
#include "tape.hpp"

namespace tapegrad {

using detail::require;
using detail::require_usage;

template <class T> void Tensor<T>::throw_undefined() {
  detail::fail<std::logic_error>("value", "expected a tensor with a value, given a default-constructed one");
}

template <class T> T Tensor<T>::item() const {
  require(size() == 1, "item", "expected one element, given a tensor of shape ", shape());
  return *value().data();
}

template <class T> detail::Recording<T>& Tensor<T>::recording_of(const char* operation) const {
  require_usage(origin_.node >= 0, operation, "expected a tensor that a Tape recorded, given one without a recording");
  Tape* tape = Tape::find(origin_.tape);
  require_usage(tape != nullptr, operation, "expected a living Tape, given a stale tensor: its Tape has ended");
  return tape->recording<T>();
}

template <class T> void Tensor<T>::retain_grad() {
  if (!leaf_) recording_of("retain_grad").retain_grad(*this);
}

template <class T> const Array<T>& Tensor<T>::grad() const {
  require_usage(leaf_ != nullptr, "grad",
                "expected a parameter or a tensor that called retain_grad() before the sweep, given ",
                origin_.node >= 0 ? "a recorded tensor that did not" : "a constant");
  if (leaf_->grad) return *leaf_->grad;
  if (!leaf_->zeros) leaf_->zeros = make_value<T>(leaf_->shape, T(0));
  return *leaf_->zeros;
}

template <class T> void Tensor<T>::register_hook(GradientHook<T> hook) {
  if (origin_.node < 0 && leaf_) return leaf_->hooks.push_back(std::move(hook));
  recording_of("register_hook").register_hook(origin_.node, std::move(hook));
}

template <class T> void Tensor<T>::set_name(std::string name) {
  if (origin_.node < 0 && leaf_)
    leaf_->name = std::move(name);
  else
    recording_of("set_name").set_name(origin_.node, std::move(name));
}

template <class T> std::string Tensor<T>::name() const {
  if (origin_.node < 0) return leaf_ ? leaf_->name : "";
  Tape* tape = Tape::find(origin_.tape);
  return tape == nullptr ? "" : tape->recording<T>().name(origin_.node);
}

template <class T> void Tensor<T>::backward(RetainGraph retain) const {
  require(size() == 1, "backward", "expected a scalar or backward(seed), given a tensor of shape ", shape());
  backward(Array<T>(shape(), T(1)), retain);
}

template <class T> void Tensor<T>::backward(Array<T> seed, RetainGraph retain) const {
  require(seed.shape() == shape(), "backward", "expected a seed of shape ", shape(), ", given ", seed.shape());
  if (origin_.node < 0) {
    require_usage(Tape::current() != nullptr, "backward",
                  "expected a recording: make a Tape before computing the tensor, none was recording");
    detail::fail<std::logic_error>("backward", "expected a tensor that depends on a parameter, given ",
                                   leaf_ ? "a parameter itself" : "one that depends on none");
  }
  Tape* tape = Tape::find(origin_.tape);
  require_usage(tape != nullptr, "backward",
                "expected the Tape that recorded the tensor to be alive on this thread, given a stale tensor: its Tape "
                "has ended");
  tape->recording<T>().sweep(*this, make_value<T>(std::move(seed)), retain);
}

template <class T>
Parameter<T>::Parameter(std::shared_ptr<Array<T>> value)
    : Tensor<T>(value, std::make_shared<detail::Leaf<T>>(detail::Leaf<T>{value->shape()})) {}

template <class T> Parameter<T>::Parameter(const Parameter& other) : Tensor<T>() { *this = other; }

template <class T> Parameter<T>& Parameter<T>::operator=(const Parameter& other) {
  if (this == &other) return *this;
  this->value_ = other.value_;
  if (!other.defined())
    this->leaf_.reset();
  else if (this->leaf_ && this->leaf_->shape == other.shape())
    zero_grad();
  else
    this->leaf_ = std::make_shared<detail::Leaf<T>>(detail::Leaf<T>{other.shape()});
  return *this;
}

template <class T> void Parameter<T>::set_value(Array<T> value) {
  require(value.shape() == this->shape(), "set_value", "expected a value of the parameter's shape ", this->shape(),
          ", given ", value.shape());
  this->value_ = make_value<T>(std::move(value));
  count_change();
}

template <class T> void Parameter<T>::set_grad(Array<T> grad) {
  require(grad.shape() == this->shape(), "set_grad", "expected a gradient of the parameter's shape ", this->shape(),
          ", given ", grad.shape());
  this->leaf_->grad = make_value<T>(std::move(grad));
}

template <class T> Array<T>& Parameter<T>::mutable_value() {
  if (!this->defined()) this->throw_undefined();
  count_change();
  if (this->value_.use_count() != 1) this->value_ = make_value<T>(*this->value_);
  return const_cast<Array<T>&>(*this->value_);  // made as a mutable Array by make_value, and nobody else sees it
}

template <class T> std::ostream& operator<<(std::ostream& out, const Tensor<T>& tensor) {
  const char* element = std::same_as<T, float> ? "float" : "double";
  if (!tensor.defined()) return out << "Tensor<" << element << "> undefined";
  return out << tensor.value() << "\nTensor<" << element << "> " << to_string(tensor.shape());
}

template <class T> std::ostream& operator<<(std::ostream& out, const Array<T>& array) {
  return xt::operator<<(out, array);
}

template std::ostream& operator<<(std::ostream&, const Array<float>&);
template std::ostream& operator<<(std::ostream&, const Array<double>&);
template std::ostream& operator<<(std::ostream&, const IntArray&);
template std::ostream& operator<<(std::ostream&, const BoolArray&);

#define INSTANTIATE(T)         \
  template class Tensor<T>;    \
  template class Parameter<T>; \
  template std::ostream& operator<<(std::ostream&, const Tensor<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
