/// The gradients of an operation's inputs, for its rule.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "../array/array.hpp"

namespace tapegrad {

/// Output of a rule's kernel, as in BLAS: with beta 0 `data` is uninitialized, with beta 1 it is a sum to add to.
template <class T> struct Destination {
  T* data;  ///< as many elements as the input has, in row-major order
  T beta;   ///< 0 or 1
};

namespace detail {
template <class T> class Sweep;
template <class T> struct Node;
template <class T> using GradPointer = std::shared_ptr<Array<T>>;  // null until something was added
}  // namespace detail

/// The gradient of one input, as the rule sees it. Valid until the rule returns.
template <class T> class Gradient {
 public:
  /// False for a constant: a rule may skip the work. Adding to it does nothing.
  bool needs_grad() const { return sum_ != nullptr; }

  /// The number of elements of the input. Requires needs_grad().
  std::size_t size() const { return element_count(*shape_); }

  /// Adds a gradient of the input's shape, or of a shape it was broadcast to: the broadcast axes are summed.
  void operator+=(const Array<T>& gradient) const;
  void operator+=(Array<T>&& gradient) const;  ///< the same; moves the array if possible
  /// The same for an expression, evaluated only if needed.
  template <class E> void operator+=(const xt::xexpression<E>& gradient) const {
    if (needs_grad()) *this += Array<T>(gradient);
  }

  /// For kernels accumulating in place. Requires needs_grad(). Call it just before writing, since two inputs may be the
  /// same tensor.
  Destination<T> destination() const;

 private:
  template <class> friend class Gradients;
  friend class detail::Sweep<T>;
  Gradient(detail::GradPointer<T>* sum, const Shape* shape) : sum_(sum), shape_(shape) {}

  detail::GradPointer<T>* sum_;  // null for a constant
  const Shape* shape_;
};

/// The gradients of an operation's inputs, numbered like the inputs.
template <class T> class Gradients {
 public:
  std::size_t size() const;                         ///< the number of inputs
  Gradient<T> operator[](std::size_t input) const;  ///< throws std::logic_error if the index is out of range

 private:
  friend class detail::Sweep<T>;
  Gradients(detail::Sweep<T>& sweep, const detail::Node<T>& node) : sweep_(sweep), node_(node) {}

  detail::Sweep<T>& sweep_;
  const detail::Node<T>& node_;
};

namespace detail {

/// The destination, filled with zeros if uninitialized: for rules adding to some elements only.
template <class T> T* zeroed_destination(const Gradient<T>& dx) {
  const auto [data, beta] = dx.destination();
  if (beta == 0) std::fill_n(data, dx.size(), T(0));
  return data;
}

}  // namespace detail
}  // namespace tapegrad
