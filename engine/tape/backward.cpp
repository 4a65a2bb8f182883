// What a tensor does with the tape that recorded it.
#include "../array/internal/error.hpp"
#include "internal/recording.hpp"
#include "scope.hpp"

namespace tapegrad {

using detail::require;
using detail::require_usage;

namespace {

// Of the living tape that recorded it; throws std::logic_error naming the operation when there is none.
detail::Recordings& recordings_of(const char* operation, const detail::Origin& origin) {
  require_usage(origin.node >= 0, operation, "expected a tensor that a Tape recorded, given one without a recording");
  detail::Recordings* const recordings = detail::TapeScope::find(origin.tape);
  require_usage(
      recordings != nullptr, operation,
      "expected the Tape that recorded the tensor to be alive on this thread, given a stale tensor: its Tape ",
      "has ended");
  return *recordings;
}

}  // namespace

template <class T> void Tensor<T>::retain_grad() {
  if (!leaf_ || is_constant()) recordings_of("retain_grad", origin_).of<T>().retain_grad(*this);
}

template <class T> void Tensor<T>::register_hook(GradientHook<T> hook) {
  if (origin_.node < 0 && !is_constant())
    return leaf_->hooks.push_back(std::make_shared<GradientHook<T>>(std::move(hook)));
  recordings_of("register_hook", origin_).of<T>().register_hook(origin_.node, std::move(hook));
}

template <class T> void Tensor<T>::set_name(std::string name) {
  if (origin_.node >= 0)
    recordings_of("set_name", origin_).of<T>().set_name(origin_.node, std::move(name));
  else if (is_constant())  // in a leaf of its own, so that copies made before keep the name that they had
    leaf_ = std::make_shared<detail::Leaf<T>>(
        detail::Leaf<T>{.shape = shape(), .requires_grad = false, .name = std::move(name)});
  else
    leaf_->name = std::move(name);
}

template <class T> std::string Tensor<T>::name() const {
  if (origin_.node < 0) return leaf_ ? leaf_->name : "";
  detail::Recordings* const recordings = detail::TapeScope::find(origin_.tape);
  return recordings == nullptr ? "" : recordings->of<T>().name(origin_.node);
}

template <class T> void Tensor<T>::backward(RetainGraph retain) const {
  require(size() == 1, "backward", "expected a scalar or backward(seed), given a tensor of shape ", shape());
  backward(Array<T>(shape(), T(1)), retain);
}

template <class T> void Tensor<T>::backward(Array<T> seed, RetainGraph retain) const {
  require(seed.shape() == shape(), "backward", "expected a seed of shape ", shape(), ", given ", seed.shape());
  if (origin_.node < 0) {
    require_usage(detail::TapeScope::current() != nullptr, "backward",
                  "expected a recording: make a Tape before computing the tensor, none was recording");
    detail::fail<std::logic_error>("backward", "expected a tensor that depends on a parameter, given ",
                                   is_constant() ? "one that depends on none" : "a parameter itself");
  }
  recordings_of("backward", origin_).sweep<T>(origin_.node, make_value<T>(std::move(seed)), retain);
}

#define INSTANTIATE(T)                                     \
  template void Tensor<T>::retain_grad();                  \
  template void Tensor<T>::register_hook(GradientHook<T>); \
  template void Tensor<T>::set_name(std::string);          \
  template std::string Tensor<T>::name() const;            \
  template void Tensor<T>::backward(RetainGraph) const;    \
  template void Tensor<T>::backward(Array<T>, RetainGraph) const;
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
