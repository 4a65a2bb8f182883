/// The stored form of an operation's rule. For the library's own sources.
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "gradient.hpp"

namespace tapegrad::detail {

/// An array within a rule's reach: the operation's value, an input's value, or one of its arguments.
struct SharedArray {
  std::shared_ptr<const void> array;
  std::size_t bytes;
};

/// The rule of an operation: given the output y and its gradient dy, adds to the gradients dx of the inputs.
template <class T> struct Rule {
  virtual ~Rule() = default;
  virtual void operator()(const Array<T>& dy, Gradients<T>& dx) const = 0;
  /// The bytes of arrays saved by the rule: its own, and the ones it captured out of `shared`.
  virtual std::size_t saved_bytes(std::span<const SharedArray> shared) const = 0;
};

/// The bytes of arrays shared or allocated by a copy of a rule's function; 0 if it cannot be copied.
template <class F> std::size_t bytes_of_copy(const F& function, std::span<const SharedArray> shared) {
  if constexpr (std::is_copy_constructible_v<F>) {
    const auto bytes = [&] {
      auto sum = static_cast<std::size_t>(array_bytes_in_use);
      for (const SharedArray& x : shared) sum += static_cast<std::size_t>(x.array.use_count()) * x.bytes;
      return sum;
    };
    const std::size_t before = bytes();
    [[maybe_unused]] const F copy(function);
    return bytes() - before;
  }
  return 0;
}

template <class T, class F> struct RuleOf final : Rule<T> {
  static constexpr bool reads_output = std::is_invocable_v<const F&, const Array<T>&, Gradients<T>&, const Array<T>&>;

  F function;
  Value<T> y;  // null unless the function reads it
  template <class G>
  RuleOf(G&& g, const Value<T>& output) : function(std::forward<G>(g)), y(reads_output ? output : nullptr) {}
  void operator()(const Array<T>& dy, Gradients<T>& dx) const override {
    if constexpr (reads_output)
      function(dy, dx, *y);
    else
      function(dy, dx);
  }
  std::size_t saved_bytes(std::span<const SharedArray> shared) const override {
    return bytes_of_copy(function, shared) + (y ? y->size() * sizeof(T) : 0);
  }
};

}  // namespace tapegrad::detail
