/// The backward pass. For the library's own sources.
#pragma once

#include <cstdint>
#include <vector>

#include "recording.hpp"

namespace tapegrad::detail {

/// One backward pass over the nodes of a tape, from a start to everything it depends on. All state of the pass is in
/// this object: if a rule or a hook throws, no gradient has changed.
template <class T> class Sweep {
 public:
  /// The gradient of the start's output is `seed`. Throws std::logic_error during another pass of the same tape.
  Sweep(Recording& recording, std::int32_t start, GradPointer<T> seed, RetainGraph retain);
  ~Sweep() { recording_->end_backward(); }
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  /// Visits the nodes from the last recorded to the first. Delivers the gradients at the end, when nothing can fail. A
  /// leaf has no rule: a parameter, or the argument of a recomputed function.
  void run(bool stop_at_leaves = false);

  /// For `recompute`, a sweep of a tape of its own inside another sweep: sums of the leaves are moved here from the
  /// outer sweep and back, which adds the numbers in the order of a single sweep, with the same bits.
  void load(std::int32_t leaf, const Gradient<T>& outer) { grad(leaf) = std::move(*outer.sum_); }
  void store(std::int32_t leaf, const Gradient<T>& outer) { *outer.sum_ = std::move(grad(leaf)); }

  /// The sum of a node's gradient so far; null if nothing was added.
  GradPointer<T>& grad(std::int32_t node) { return state(node).grad; }
  void add(std::int32_t node, const GradPointer<T>& gradient);

 private:
  friend class Gradients<T>;

  struct State {           // of a node
    GradPointer<T> grad;   // the sum so far; after the visit, the gradient to deliver
    bool reached = false;  // the start depends on the node
  };

  State& state(std::int32_t node) { return states_[static_cast<std::size_t>(node)]; }
  void visit(std::int32_t i);
  bool call_hooks(std::int32_t i, GradPointer<T>& dy) const;
  void apply_rule(std::int32_t i, const GradPointer<T>& dy);
  void deliver(bool to_leaves);
  Gradient<T> gradient_of_input(const Node<T>& node, std::size_t input) {
    const std::int32_t edge = node.inputs[input];
    if (edge < 0) return {nullptr, nullptr};
    return {contributions_ != nullptr ? &(*contributions_)[input] : &grad(edge), &nodes_[edge].shape};
  }

  const std::shared_ptr<Recording> recording_;  // keeps the nodes alive if a hook destroys the tape
  Nodes<T>& nodes_;
  const RetainGraph retain_;
  Observer<T>* const observer_;  // null without TapeOptions; may throw, like a rule
  std::vector<State, PoolAllocator<State>> states_;
  std::vector<GradPointer<T>>* contributions_ = nullptr;  // if an observer wants a rule's results first, to add() them
};

}  // namespace tapegrad::detail
