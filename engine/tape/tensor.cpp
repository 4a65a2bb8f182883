#include "tensor.hpp"

#include <xtensor/xio.hpp>

#include <algorithm>
#include <mutex>
#include <ostream>

#include "../array/internal/error.hpp"

namespace tapegrad {

using detail::require;
using detail::require_usage;

template <class T> void Tensor<T>::throw_undefined() const {
  require_usage(!is_in_bfloat16(), "value", "expected a tensor whose numbers are at hand, given ", *this,
                ", which is held in bfloat16: linear and embedding alone take it");
  detail::fail<std::logic_error>("value", "expected a tensor with a value, given a default-constructed one");
}

template <class T> void Tensor<T>::refuse_assignment() const {
  detail::fail<std::logic_error>("Parameter", "expected set_value() to change ", described(*this),
                                 ", given an assignment to it as a Tensor, which would make it a constant");
}

template <class T> T Tensor<T>::item() const {
  require(size() == 1, "item", "expected one element, given a tensor of shape ", shape());
  return *value().data();
}

template <class T> const Array<T>& Tensor<T>::grad() const {
  require_usage(leaf_ != nullptr && !is_constant(), "grad",
                "expected a parameter or a tensor that called retain_grad() before the sweep, given ",
                origin_.node >= 0 ? "a recorded tensor that did not" : "a constant");
  if (leaf_->grad) return *leaf_->grad;
  static std::mutex making_zeros;  // threads may share a model that none of them changes
  const std::lock_guard lock(making_zeros);
  if (!leaf_->zeros) leaf_->zeros = make_value<T>(leaf_->shape, T(0));
  return *leaf_->zeros;
}

template <class T> std::ostream& operator<<(std::ostream& out, const Tensor<T>& tensor) {
  const char* element = std::same_as<T, float> ? "float" : "double";
  if (!tensor.defined()) return out << "Tensor<" << element << "> undefined";
  if (!tensor.is_in_bfloat16())
    return out << tensor.value() << "\nTensor<" << element << "> " << to_string(tensor.shape());
  Array<T> widened(tensor.shape());
  std::copy(tensor.bfloat16().begin(), tensor.bfloat16().end(), widened.begin());
  return out << widened << "\nTensor<" << element << "> " << to_string(tensor.shape()) << " held in bfloat16";
}

template <class T> std::ostream& operator<<(std::ostream& out, const Array<T>& array) {
  return xt::operator<<(out, array);
}

template std::ostream& operator<<(std::ostream&, const Array<float>&);
template std::ostream& operator<<(std::ostream&, const Array<double>&);
template std::ostream& operator<<(std::ostream&, const IntArray&);
template std::ostream& operator<<(std::ostream&, const BoolArray&);

// What a tensor does with its tape is in backward.cpp.
#define INSTANTIATE(T)                                \
  template void Tensor<T>::throw_undefined() const;   \
  template void Tensor<T>::refuse_assignment() const; \
  template T Tensor<T>::item() const;                 \
  template const Array<T>& Tensor<T>::grad() const;   \
  template std::ostream& operator<<(std::ostream&, const Tensor<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
