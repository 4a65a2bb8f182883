/// Hooks: functions that read or change a gradient during a backward pass.
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
  /// An empty handle; remove() does nothing.
  HookHandle() = default;
  /// `remove` unregisters the hook.
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}

  /// Unregisters the hook; a call in progress finishes.
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

namespace detail {

/// The hooks of one tensor, in the order of registration.
template <class T> class Hooks {
 public:
  using List = std::vector<std::shared_ptr<GradientHook<T>>>;

  /// The handle does not extend the lifetime of the hook or the list.
  HookHandle add(GradientHook<T> hook) {
    if (!list_) list_ = std::make_shared<List>();
    const auto added = std::make_shared<GradientHook<T>>(std::move(hook));
    list_->push_back(added);
    return HookHandle([list = std::weak_ptr(list_), hook = std::weak_ptr(added)] {
      if (const auto alive = list.lock()) std::erase(*alive, hook.lock());
    });
  }
  void clear() { list_.reset(); }

  /// The hooks registered now. A backward pass calls these, even if a hook adds or removes others.
  List registered() const { return list_ ? *list_ : List(); }

 private:
  std::shared_ptr<List> list_;  // null until the first hook
};

}  // namespace detail
}  // namespace tapegrad
