#include "tensor.hpp"

#include "../array/internal/error.hpp"
#include "internal/sweep.hpp"

namespace tapegrad {

using namespace detail;

// The living tape that recorded a tensor. Throws std::logic_error if there is none.
static Recording& recording_of(const char* operation, const Origin& origin) {
  require_usage(origin.node >= 0, operation, "expected a tensor recorded by a Tape, got a constant");
  Recording* const recording = Tape::with_number(origin.tape);
  require_usage(recording != nullptr, operation, "expected a tensor whose Tape is alive on this thread, ",
                "got a stale one or one of another thread; use it on its Tape's thread, before the Tape is destroyed");
  return *recording;
}

template <class T>
void detail::GradSlot<T>::throw_resized(const char* operation, const char* what, const char* name,
                                        const Array<T>& x) const {
  fail<std::logic_error>(operation, "expected a ", what, " to keep its shape ", shape, ", got ", name,
                         *name == '\0' ? "" : " ", x.shape(), "; change its elements, not its shape");
}

template <class T> void Tensor<T>::throw_undefined() const {
  require_usage(
      !slot_, "value", "expected a parameter that holds its value, got ", name().empty() ? "one of shape" : name(), " ",
      [this] { return to_string(slot_->shape); }, ", which released it; set_value() sets a new one");
  fail<std::logic_error>("value", "expected a defined tensor, got a default-constructed or moved-from one");
}

template <class T> Tensor<T>& Tensor<T>::operator=(Tensor&& other) {
  require_usage(!is_parameter(), "Parameter", "expected set_value(), got an assignment to ", *this,
                " as a Tensor, which would make it a constant");
  Tensor taken(std::move(other));
  value_ = std::move(taken.value_);
  slot_ = std::move(taken.slot_);
  name_ = std::move(taken.name_);
  origin_ = taken.origin_;
  return *this;
}

template <class T> T Tensor<T>::item() const {
  require(size() == 1, "item", "expected one element, got a tensor of shape ", shape());
  return *value().data();
}

template <class T> void Tensor<T>::retain_grad() {
  if (!slot_) recording_of("retain_grad", origin_).of<T>().retain_grad(*this);
}

template <class T> const Array<T>& Tensor<T>::grad() const& {
  require_usage(slot_ != nullptr, "grad", "expected a parameter or a tensor with a retained gradient, got ",
                origin_.node >= 0 ? "a tensor without one; call retain_grad() before backward()" : "a constant");
  return slot_->grad ? *slot_->grad : slot_->zeros();
}

template <class T> HookHandle Tensor<T>::register_hook(GradientHook<T> hook) {
  Hooks<T>& hooks =
      has_variable() ? variable().hooks : recording_of("register_hook", origin_).of<T>().hooks(origin_.node);
  return hooks.add(std::move(hook));
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
  Recording* const recording = Tape::with_number(origin_.tape);
  return recording == nullptr ? "" : recording->of<T>().name(origin_.node);
}

template <class T> void Tensor<T>::backward(RetainGraph retain) const {
  require(size() == 1, "backward", "expected a scalar or backward(seed), got a tensor of shape ", shape(),
          "; reduce it with sum() or mean()");
  backward(Array<T>(shape(), T(1)), retain);
}

template <class T> void Tensor<T>::backward(Array<T> seed, RetainGraph retain) const {
  require(seed.shape() == shape(), "backward", "expected a seed of shape ", shape(), ", got ", seed.shape());
  if (origin_.node < 0) {
    require_usage(Tape::records(), "backward",
                  "expected a recorded tensor, got one without a Tape; create a Tape before computing it");
    fail<std::logic_error>("backward", "expected a tensor computed from trainable parameters, got ",
                           has_variable() ? "a parameter itself" : "one that depends on none");
  }
  Recording& recording = recording_of("backward", origin_);
  Sweep<T>(recording, origin_.node, make_value<T>(std::move(seed)), retain).run();
}

template struct detail::GradSlot<float>;
template struct detail::GradSlot<double>;
template class Tensor<float>;
template class Tensor<double>;

}  // namespace tapegrad
