/// Members reset by moving, which leaves moved-from objects empty. For the library's own sources.
#pragma once

#include <utility>

namespace tapegrad::detail {

/// A number or flag. Moving from it leaves V().
template <class V> class ResetOnMove {
 public:
  ResetOnMove(V value = V()) : value_(value) {}
  ResetOnMove(const ResetOnMove&) = default;
  ResetOnMove(ResetOnMove&& other) noexcept : value_(std::exchange(other.value_, V())) {}
  ResetOnMove& operator=(ResetOnMove other) noexcept {
    value_ = other.value_;
    return *this;
  }

  operator V() const { return value_; }

 private:
  V value_;
};

}  // namespace tapegrad::detail
