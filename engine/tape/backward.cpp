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

// The list is in a parameter's place, or on the tape: what the handle holds keeps neither alive.
template <class T> HookHandle Tensor<T>::register_hook(GradientHook<T> hook) {
  auto registered = std::make_shared<GradientHook<T>>(std::move(hook));
  const auto add_to = [&](detail::Hooks<T>& hooks, auto hooks_if_alive) {
    HookHandle handle([hooks_if_alive, added = std::weak_ptr(registered)] {
      if (detail::Hooks<T>* const list = hooks_if_alive()) std::erase(*list, added.lock());
    });
    hooks.push_back(std::move(registered));
    return handle;
  };
  if (origin_.node < 0 && !is_constant())
    return add_to(leaf_->hooks, [leaf = std::weak_ptr(leaf_)] {
      const auto alive = leaf.lock();
      return alive ? &alive->hooks : nullptr;
    });
  detail::Recordings& tape = recordings_of("register_hook", origin_);
  return add_to(tape.of<T>().hooks(origin_.node), [tape = tape.weak_from_this(), node = origin_.node] {
    const auto alive = tape.lock();
    return alive ? &alive->template of<T>().hooks(node) : nullptr;
  });
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

#define INSTANTIATE(T)                                           \
  template void Tensor<T>::retain_grad();                        \
  template HookHandle Tensor<T>::register_hook(GradientHook<T>); \
  template void Tensor<T>::set_name(std::string);                \
  template std::string Tensor<T>::name() const;                  \
  template void Tensor<T>::backward(RetainGraph) const;          \
  template void Tensor<T>::backward(Array<T>, RetainGraph) const;
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
