/// Hooks: functions that look at a gradient during a backward pass, or change it.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "../array/array.hpp"

namespace tapegrad {

/// Called with a complete gradient, which it may change in place. The shape must stay the same.
template <class T> using GradientHook = std::function<void(Array<T>& gradient)>;

/// Returned by register_hook.
class HookHandle {
 public:
  /// Of no hook.
  HookHandle() = default;
  /// Calls `remove` when asked to remove the hook.
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}

  /// Unregisters the hook; a call in progress finishes.
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

namespace detail {

/// The hooks of one tensor, in the order of registration. They are shared because a backward pass calls the hooks
/// registered when the gradient arrived, even if a hook changes the list.
template <class T> using Hooks = std::vector<std::shared_ptr<GradientHook<T>>>;

}  // namespace detail
}  // namespace tapegrad
