/// Where backward passes deliver gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "../array/array.hpp"
#include "hook.hpp"

namespace tapegrad {

/// How many backward passes contributed to a parameter's gradient since it was cleared.
struct SweepCount {
  std::size_t total = 0;          ///< all passes
  std::size_t before_change = 0;  ///< passes before the value first changed; 0 if it did not change

  /// True if gradients at different values were added up: zero_grad() was forgotten.
  bool over_changed_values() const { return before_change > 0 && total > before_change; }
};

namespace detail {

/// The tape and the operation of a value.
struct Origin {
  std::uint64_t tape = 0;  // tapes are numbered from 1; numbers are never reused
  std::int32_t node = -1;  // -1 if no recorded operation made it
};

/// The accumulated gradient of a parameter, or of a tensor after retain_grad().
template <class T> struct GradSlot {
  const Shape shape;
  std::shared_ptr<Array<T>> grad{};  // null until a gradient arrives

  explicit GradSlot(const Shape& s) : shape(s) {}

  /// Zeros, shown until a gradient arrives. Thread-safe, for threads reading a shared model.
  const Array<T>& zeros() const {
    std::call_once(zeros_once_, [this] { zeros_ = make_value<T>(shape, T(0)); });
    return *zeros_;
  }

  /// Throws std::logic_error if a user resized the value or gradient of the tensor `name` while changing it in place.
  void require_shape(const char* operation, const char* what, const char* name, const Array<T>& x) const {
    if (x.shape() != shape) [[unlikely]]
      throw_resized(operation, what, name, x);
  }

 private:
  [[noreturn]] void throw_resized(const char* operation, const char* what, const char* name, const Array<T>& x) const;

  mutable std::once_flag zeros_once_;
  mutable Value<T> zeros_;
};

/// A parameter's storage, shared by the parameter, its handles and its readers' tapes.
template <class T> struct Variable : GradSlot<T> {
  Value<T> value;
  bool requires_grad = true;  // false if frozen
  std::string name{};         // as given, or the parameter's path in its model
  Hooks<T> hooks{};
  SweepCount sweeps{};
  Origin last_read{};                        // its node on the last tape to read it
  std::uint64_t last_sweep = 0;              // the number of the last backward pass to reach it
  std::size_t parameters_in_last_sweep = 0;  // reached by that pass

  Variable(const Shape& shape, Value<T> v) : GradSlot<T>(shape), value(std::move(v)) {}

  void clear_grad() {
    this->grad.reset();
    sweeps = {};
  }
};

}  // namespace detail
}  // namespace tapegrad
