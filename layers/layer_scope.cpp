#include "layer_scope.hpp"

#include <cstdio>
#include <exception>
#include <utility>

#include "../engine/array/internal/error.hpp"
#include "../engine/tape/internal/recording.hpp"
#include "internal/layer_call.hpp"

namespace tapegrad {

template <class T> static constinit thread_local Patch<T>* innermost = nullptr;

bool detail::layers_are_observed() noexcept {
  const Recording* const recording = Tape::current();
  return (recording != nullptr && recording->keeps_layers()) || innermost<float> || innermost<double>;
}

LayerScope::LayerScope(std::string_view name) {
  if (!detail::layers_are_observed()) return;
  const std::string outer = detail::open_layer ? detail::open_layer->path + '.' : "";
  open(outer + std::string(name));
}

void LayerScope::open(std::string path) {
  if (path.empty()) return;
  call_ = std::make_shared<const detail::LayerCall>(std::move(path), detail::shared_open_layer());
  detail::open_layer = call_.get();
}

LayerScope::~LayerScope() {
  if (call_) detail::open_layer = call_->outer.get();
}

template <class T> Tensor<T> LayerScope::output(Tensor<T> y) const {
  if (!call_) return y;
  const auto apply = [&](const auto& self, Patch<T>* patch) -> void {  // the outermost first
    if (patch == nullptr) return;
    self(self, patch->outer_);
    if (patch->layer_ != call_->path) return;
    Tensor<T> changed = patch->f_(y);
    detail::require(changed.shape() == y.shape(), "Patch", "expected an output of ", call_->path, " of shape ",
                    y.shape(), ", got ", changed.shape());
    ++patch->calls_;
    y = std::move(changed);
  };
  apply(apply, innermost<T>);
  return y;
}

template <class T>
Patch<T>::Patch(std::string layer, Function f) : layer_(std::move(layer)), f_(std::move(f)), outer_(innermost<T>) {
  innermost<T> = this;
}

template <class T>
Patch<T>::Patch(std::string layer, Array<T> output)
    : Patch(std::move(layer), [y = Tensor<T>(std::move(output))](const Tensor<T>&) { return y; }) {}

template <class T> Patch<T>::~Patch() {
  Patch** link = &innermost<T>;  // patches on the heap may end in any order
  while (*link != nullptr && *link != this) link = &(*link)->outer_;
  if (*link == nullptr) {  // another thread's list of patches would keep a pointer to freed memory
    std::fputs("[Patch] expected destruction on the thread that created it, got another thread\n", stderr);
    std::terminate();
  }
  *link = outer_;
}

template Tensor<float> LayerScope::output(Tensor<float>) const;
template Tensor<double> LayerScope::output(Tensor<double>) const;
template class Patch<float>;
template class Patch<double>;

}  // namespace tapegrad
