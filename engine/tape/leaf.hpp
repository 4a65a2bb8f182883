/// Where a parameter's value and gradient live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../array/array.hpp"
#include "../array/bfloat16.hpp"

namespace tapegrad {

/// Looks at a gradient, or changes it.
template <class T> using GradientHook = std::function<void(Array<T>& gradient)>;

/// What registering a hook gives back.
class HookHandle {
 public:
  /// Of no hook.
  HookHandle() = default;
  /// Calls `remove` once it is asked to.
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}

  /// Removes the hook where it still is: a sweep that is calling it calls it to its end.
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

/// How many sweeps have reached a parameter since its gradient was cleared. Their gradients have been added up.
struct SweepCount {
  std::size_t total = 0;          ///< all of them
  std::size_t before_change = 0;  ///< how many there were when the value first changed; 0 when it did not

  /// Whether gradients at different values of the parameter were added up: zero_grad() was forgotten.
  bool over_changed_values() const { return before_change > 0 && total > before_change; }
};

namespace detail {

/// Hooks of one tensor. A sweep calls those that it finds, whatever becomes of the list meanwhile: it shares the hooks
/// and does not copy them, so that each keeps its state from sweep to sweep.
template <class T> using Hooks = std::vector<std::shared_ptr<GradientHook<T>>>;

/// What a parameter, its handles and its recordings share; or where a tensor that retains its gradient has it gathered;
/// or where a constant has its name.
template <class T> struct Leaf {
  Shape shape;
  Value<T> value{};                                   // of a parameter
  std::shared_ptr<const Array<BFloat16>> bfloat16{};  // in its stead, of one that is held in bfloat16
  bool requires_grad = true;                          // false for a frozen parameter and for a constant
  std::shared_ptr<Array<T>> grad{};                   // null until a first gradient arrives
  std::shared_ptr<Array<T>> zeros{};                  // what is shown until then
  std::string name{};  // as given; a parameter's path in its model, once a walk has been over it
  Hooks<T> hooks{};
  SweepCount sweeps{};
  std::uint64_t last_sweep = 0;  // its number (internal/last_sweep.hpp)

  void clear_grad() {
    grad.reset();
    sweeps = {};
    last_sweep = 0;
  }
};

}  // namespace detail
}  // namespace tapegrad
