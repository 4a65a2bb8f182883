/// The operations on one type of one tape. For the library's own sources.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "observer.hpp"

namespace tapegrad::detail {

/// An operation, or a leaf: a parameter, or a placeholder for a tensor of an outer tape.
template <class T> struct Node {
  Operation operation;                    // "parameter" for a parameter, "input" for a placeholder
  Shape shape;                            // of the output
  Edges inputs{};                         // the nodes of the inputs; -1 for a constant
  std::shared_ptr<const Rule<T>> rule{};  // null for a leaf and for a consumed node
  std::shared_ptr<GradSlot<T>> slot{};    // receives the output's gradient; may be null
  bool is_parameter = false;              // the slot is a Variable

  Node(const Operation& made_by, const Shape& of, Edges&& read, std::shared_ptr<const Rule<T>>&& backward)
      : operation(made_by), shape(of), inputs(std::move(read)), rule(std::move(backward)) {}
  explicit Node(const std::shared_ptr<GradSlot<T>>& variable)
      : operation("parameter"), shape(variable->shape), slot(variable), is_parameter(true) {}

  bool is_leaf() const { return inputs.empty(); }  // an operation is recorded only if an input requires a gradient
  Variable<T>& variable() const { return static_cast<Variable<T>&>(*slot); }
};

/// The operations on T of one tape, in the order of recording: each node comes after the nodes of its inputs.
template <class T> class Nodes {
 public:
  Nodes(std::uint64_t tape, const TapeOptions& options);

  std::size_t size() const { return nodes_.size(); }
  Node<T>& operator[](std::int32_t i) { return nodes_[static_cast<std::size_t>(i)]; }
  const Node<T>& operator[](std::int32_t i) const { return nodes_[static_cast<std::size_t>(i)]; }

  /// The node of x; -1 for a constant, a frozen parameter or an undefined x. The first read of a parameter appends its
  /// node. Throws std::logic_error if x belongs to another tape or its value was resized.
  std::int32_t find(const char* operation, const Tensor<T>& x);

  /// Appends a node for the parameter x.
  std::int32_t append_parameter(const Tensor<T>& x);

  /// Appends an operation with the output y.
  void append(const Operation& operation, Tensor<T>& y, const Inputs<T>& inputs, Edges&& edges,
              std::shared_ptr<const Rule<T>>&& rule, const Describe<T>& describe);

  void retain_grad(Tensor<T>& y);
  Hooks<T>& hooks(std::int32_t i) { return hooks_[i]; }
  /// A copy of the hooks of a node's gradient.
  typename Hooks<T>::List registered_hooks(std::int32_t i) const;
  void set_name(std::int32_t i, std::string name) { names_[i] = std::move(name); }
  /// The given name, a parameter's path, or "".
  std::string name(std::int32_t i) const;

  /// Null if the tape's options need no observer.
  Observer<T>* observer() const { return observer_.get(); }

 private:
  std::int32_t find_variable(Variable<T>& variable) const;

  std::uint64_t tape_;
  std::deque<Node<T>, PoolAllocator<Node<T>>> nodes_;  // addresses stay valid while hooks and rules record
  std::unordered_map<std::int32_t, std::string> names_;
  std::unordered_map<std::int32_t, Hooks<T>> hooks_;  // of recorded tensors; a parameter's are in its Variable
  std::unique_ptr<Observer<T>> observer_;
};

}  // namespace tapegrad::detail
