/// The tape: what is recorded, in which order, and how it is swept backwards.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "tensor.hpp"

namespace tapegrad {

template <class T> class Gradients;

namespace detail {

/// A rule: given dy, the gradient of an operation's output, it adds to the gradients dx of the inputs.
template <class T> struct Rule {
  virtual ~Rule() = default;
  virtual void operator()(const Array<T>& dy, Gradients<T>& dx) const = 0;
};

/// An operation on the tape, or a parameter that operations read.
template <class T> struct Node {
  using Edges = xt::svector<std::int32_t, 4>;

  const char* operation;                // "parameter" for a parameter
  Shape shape;                          // of the output
  Edges inputs;                         // the nodes it read; -1 for a constant
  std::shared_ptr<const Rule<T>> rule;  // null for a parameter, and once consumed
  std::shared_ptr<Leaf<T>> leaf;        // of a parameter, or of an output that retains its gradient
  std::shared_ptr<Array<T>> grad;       // what has arrived in the sweep under way
  bool is_parameter;
};

/// The part of a tape that records operations on T.
template <class T> class Recording {
 public:
  explicit Recording(std::uint64_t tape) : tape_(tape) {}

  /// The node that made x, -1 for a constant or an undefined x; throws std::logic_error when x belongs to another tape.
  std::int32_t edge(const char* operation, const Tensor<T>& x);

  /// Records that the operation made y.
  void append(const char* operation, Tensor<T>& y, typename Node<T>::Edges inputs, std::shared_ptr<const Rule<T>> rule);

  void retain_grad(Tensor<T>& y);
  void sweep(const Tensor<T>& y, std::shared_ptr<Array<T>> seed, RetainGraph retain);

  std::size_t size() const { return nodes_.size(); }

 private:
  friend class Gradients<T>;

  void check_reachable(std::int32_t start);

  std::uint64_t tape_;
  std::vector<Node<T>, PoolAllocator<Node<T>>> nodes_;
  std::vector<bool, PoolAllocator<bool>> reached_;  // scratch of a sweep: which nodes the start depends on
  // The node of each parameter that has been read, so that many uses share one.
  std::unordered_map<const Leaf<T>*, std::int32_t, std::hash<const Leaf<T>*>, std::equal_to<>,
                     PoolAllocator<std::pair<const Leaf<T>* const, std::int32_t>>>
      parameters_;
};

}  // namespace detail

/// Records this thread's operations from its construction to the end of its scope. Tapes nest: the innermost records.
/// Without a tape operations compute values alone. Not copied, not moved, destroyed on the thread that made it.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// The tape that records on this thread; null without one.
  static Tape* current() noexcept;

  /// This thread's living tape with that number, or null.
  static Tape* find(std::uint64_t id) noexcept;

  /// Operations and parameters recorded so far.
  std::size_t size() const { return recording_float_.size() + recording_double_.size(); }

  template <class T> detail::Recording<T>& recording() {
    if constexpr (std::same_as<T, float>)
      return recording_float_;
    else
      return recording_double_;
  }

 private:
  std::uint64_t id_;
  Tape* outer_;
  detail::Recording<float> recording_float_;
  detail::Recording<double> recording_double_;
};

/// Where a rule's kernel writes: `data` holds garbage when beta is 0, and a sum to add to when it is 1, as in BLAS.
template <class T> struct Destination {
  T* data;
  T beta;
};

/// The gradient of one input, as the rule sees it.
template <class T> class Gradient {
 public:
  /// Whether anybody needs it: a rule may skip work for constants. Adding to one that nobody needs does nothing.
  bool wanted() const { return slot_ != nullptr; }

  /// How many elements the input has. Only for a wanted gradient.
  std::size_t size() const { return element_count(*shape_); }

  /// Adds a gradient of the input's shape, or of one that the input was broadcast to: it is summed back.
  void operator+=(const Array<T>& gradient) const { add(gradient); }
  void operator+=(Array<T>&& gradient) const { add(std::move(gradient)); }
  template <class E> void operator+=(const xt::xexpression<E>& gradient) const {
    if (wanted()) add(Array<T>(gradient));
  }

  /// For kernels that accumulate in place. Only for a wanted gradient; ask just before writing, since two inputs may be
  /// the same tensor.
  Destination<T> destination() const;

  /// The gradient's array, zeros at first, to add to here and there. Only for a wanted gradient.
  Array<T>& zeros_or_sum() const;

 private:
  friend class Gradients<T>;
  friend class detail::Recording<T>;
  Gradient(std::shared_ptr<Array<T>>* slot, const Shape* shape) : slot_(slot), shape_(shape) {}

  void add(const Array<T>& gradient) const;
  void add(Array<T>&& gradient) const;

  std::shared_ptr<Array<T>>* slot_;
  const Shape* shape_;
};

/// The gradients of all inputs of an operation, numbered as its inputs are.
template <class T> class Gradients {
 public:
  Gradients(detail::Recording<T>& recording, std::int32_t node) : recording_(recording), node_(node) {}
  std::size_t size() const;
  Gradient<T> operator[](std::size_t input) const;

 private:
  detail::Recording<T>& recording_;
  std::int32_t node_;
};

}  // namespace tapegrad
