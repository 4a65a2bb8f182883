/// What a tape stores of an operation to propagate gradients through it. For the library's own sources.
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "gradient.hpp"

namespace tapegrad::detail {

/// The rule of an operation: given the output y and its gradient dy, adds to the gradients dx of the inputs.
template <class T> struct Rule {
  virtual ~Rule() = default;
  virtual void operator()(const Array<T>& dy, Gradients<T>& dx) const = 0;
  /// The bytes of arrays that the rule keeps alive: those it owns, and of the operation's `values` those it shares.
  virtual std::size_t saved_bytes(std::span<const Value<T>> values) const = 0;
};

/// The bytes that a copy of a rule's function shares or allocates; 0 if it cannot be copied.
template <class T, class F> std::size_t bytes_of_copy(const F& function, std::span<const Value<T>> values) {
  if constexpr (std::is_copy_constructible_v<F>) {
    const auto shared = [&] {
      std::size_t bytes = 0;
      for (const Value<T>& x : values) bytes += static_cast<std::size_t>(x.use_count()) * x->size() * sizeof(T);
      return bytes + static_cast<std::size_t>(array_bytes_in_use);
    };
    const std::size_t before = shared();
    [[maybe_unused]] const F copy(function);
    return shared() - before;
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
  std::size_t saved_bytes(std::span<const Value<T>> values) const override {
    return bytes_of_copy(function, values) + (y ? y->size() * sizeof(T) : 0);
  }
};

}  // namespace tapegrad::detail
