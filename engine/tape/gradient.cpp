#include "gradient.hpp"

#include "../array/internal/error.hpp"
#include "../kernels/strided.hpp"
#include "internal/sweep.hpp"

namespace tapegrad {

template <class T> std::size_t Gradients<T>::size() const { return node_.inputs.size(); }

template <class T> Gradient<T> Gradients<T>::operator[](std::size_t input) const {
  detail::require_usage(input < size(), node_.operation.name, "expected a backward rule for ", size(),
                        " inputs, got one that accesses the gradient of input ", input);
  return sweep_.gradient_of_input(node_, input);
}

template <class T> Destination<T> Gradient<T>::destination() const {
  const bool is_first = *sum_ == nullptr;
  if (is_first) *sum_ = make_value<T>(*shape_);
  return {(*sum_)->data(), is_first ? T(0) : T(1)};
}

template <class T> void Gradient<T>::operator+=(const Array<T>& gradient) const {
  if (!needs_grad()) return;
  if (*sum_ == nullptr && gradient.shape() == *shape_) return *this += detail::map<T>(gradient, [](T g) { return g; });
  detail::zeroed_destination(*this);
  detail::add_summed(**sum_, gradient);
}

template <class T> void Gradient<T>::operator+=(Array<T>&& gradient) const {
  if (needs_grad() && *sum_ == nullptr && gradient.shape() == *shape_)
    *sum_ = make_value<T>(std::move(gradient));
  else
    *this += gradient;  // an lvalue now
}

#define INSTANTIATE(T)        \
  template class Gradient<T>; \
  template class Gradients<T>;
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
