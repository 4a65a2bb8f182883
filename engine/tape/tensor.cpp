#include "tensor.hpp"

#include <xtensor/xio.hpp>

#include <ostream>

#include "../array/internal/error.hpp"
#include "internal/sweep.hpp"

namespace tapegrad {

using detail::fail;
using detail::require;
using detail::require_usage;

namespace {

// The living tape that recorded a tensor. Throws std::logic_error if there is none.
detail::Recording& recording_of(const char* operation, const detail::Origin& origin) {
  require_usage(origin.node >= 0, operation, "expected a tensor that a Tape recorded, given one without a recording");
  detail::Recording* const recording = Tape::find(origin.tape);
  require_usage(
      recording != nullptr, operation,
      "expected the Tape that recorded the tensor to be alive on this thread, given a stale tensor: its Tape ",
      "has ended");
  return *recording;
}

}  // namespace

template <class T>
void detail::GradSlot<T>::require_shape(const char* operation, const char* what, const std::string& name,
                                        const Array<T>& x) const {
  require_usage(x.shape() == shape, operation, "expected a ", what, " to keep its shape ", shape, ", given ", name,
                name.empty() ? "" : " ", x.shape());
}

template <class T> void Tensor<T>::throw_undefined() const {
  fail<std::logic_error>("value", "expected a tensor with a value, given a default-constructed one");
}

template <class T> Tensor<T>& Tensor<T>::operator=(Tensor&& other) {
  require_usage(!is_parameter(), "Parameter", "expected set_value() to change ", described(*this),
                ", given an assignment to it as a Tensor, which would make it a constant");
  Tensor taken(std::move(other));
  value_ = std::move(taken.value_);
  slot_ = std::move(taken.slot_);
  name_ = std::move(taken.name_);
  origin_ = taken.origin_;
  return *this;
}

template <class T> T Tensor<T>::item() const {
  require(size() == 1, "item", "expected one element, given a tensor of shape ", shape());
  return *value().data();
}

template <class T> void Tensor<T>::retain_grad() {
  if (!slot_) recording_of("retain_grad", origin_).of<T>().retain_grad(*this);
}

template <class T> const Array<T>& Tensor<T>::grad() const& {
  require_usage(slot_ != nullptr, "grad",
                "expected a parameter or a tensor that called retain_grad() before the sweep, given ",
                origin_.node >= 0 ? "a recorded tensor that did not" : "a constant");
  return slot_->grad ? *slot_->grad : slot_->zeros();
}

// The list is in a parameter's Variable or on the tape. The handle keeps neither alive.
template <class T> HookHandle Tensor<T>::register_hook(GradientHook<T> hook) {
  auto registered = std::make_shared<GradientHook<T>>(std::move(hook));
  const auto add_to = [&](detail::Hooks<T>& hooks, auto hooks_if_alive) {
    HookHandle handle([hooks_if_alive, added = std::weak_ptr(registered)] {
      if (detail::Hooks<T>* const list = hooks_if_alive()) std::erase(*list, added.lock());
    });
    hooks.push_back(std::move(registered));
    return handle;
  };
  if (has_variable())
    return add_to(variable().hooks, [slot = std::weak_ptr(slot_)] {
      const auto alive = slot.lock();
      return alive ? &static_cast<detail::Variable<T>&>(*alive).hooks : nullptr;
    });
  detail::Recording& recording = recording_of("register_hook", origin_);
  return add_to(recording.of<T>().hooks(origin_.node), [tape = recording.weak_from_this(), node = origin_.node] {
    const auto alive = tape.lock();
    return alive ? &alive->template of<T>().hooks(node) : nullptr;
  });
}

template <class T> void Tensor<T>::set_name(std::string name) {
  if (origin_.node >= 0)
    recording_of("set_name", origin_).of<T>().set_name(origin_.node, std::move(name));
  else if (has_variable())
    variable().name = std::move(name);
  else if (defined())
    name_ = std::make_shared<const std::string>(std::move(name));
  else
    throw_undefined();
}

template <class T> std::string Tensor<T>::name() const {
  if (origin_.node < 0) return has_variable() ? variable().name : name_ ? *name_ : "";
  detail::Recording* const recording = Tape::find(origin_.tape);
  return recording == nullptr ? "" : recording->of<T>().name(origin_.node);
}

template <class T> void Tensor<T>::backward(RetainGraph retain) const {
  require(size() == 1, "backward", "expected a scalar or backward(seed), given a tensor of shape ", shape());
  backward(Array<T>(shape(), T(1)), retain);
}

template <class T> void Tensor<T>::backward(Array<T> seed, RetainGraph retain) const {
  require(seed.shape() == shape(), "backward", "expected a seed of shape ", shape(), ", given ", seed.shape());
  if (origin_.node < 0) {
    require_usage(Tape::records(), "backward",
                  "expected a recording: make a Tape before computing the tensor, none was recording");
    fail<std::logic_error>("backward", "expected a tensor that depends on a parameter, given ",
                           has_variable() ? "a parameter itself" : "one that depends on none");
  }
  detail::Recording& recording = recording_of("backward", origin_);
  detail::Sweep<T>(recording, origin_.node, make_value<T>(std::move(seed)), retain).run();
}

template <class T> std::ostream& operator<<(std::ostream& out, const Tensor<T>& tensor) {
  const char* element = std::same_as<T, float> ? "float" : "double";
  if (!tensor.defined()) return out << "Tensor<" << element << "> undefined";
  return out << tensor.value() << "\nTensor<" << element << "> " << to_string(tensor.shape());
}

template <class T> std::ostream& operator<<(std::ostream& out, const Array<T>& array) {
  return xt::operator<<(out, array);
}

template std::ostream& operator<<(std::ostream&, const BoolArray&);
template std::ostream& operator<<(std::ostream&, const IntArray&);

#define INSTANTIATE(T)                                               \
  template struct detail::GradSlot<T>;                               \
  template class Tensor<T>;                                          \
  template std::ostream& operator<<(std::ostream&, const Array<T>&); \
  template std::ostream& operator<<(std::ostream&, const Tensor<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
