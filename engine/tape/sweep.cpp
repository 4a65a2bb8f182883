#include "internal/sweep.hpp"

#include <atomic>

#include "../array/internal/error.hpp"
#include "../kernels/strided.hpp"

namespace tapegrad::detail {

// The array, or a copy to change if it has other owners.
template <class T> static GradPointer<T> copy_if_shared(const GradPointer<T>& array) {
  return array.use_count() > 1 ? make_value<T>(*array) : array;
}

// Adds a gradient to a sum. The first one becomes the sum.
template <class T> static void add_to(GradPointer<T>& sum, GradPointer<T> gradient) {
  if (sum && gradient)
    add_summed(*sum, *gradient);
  else if (gradient)
    sum = std::move(gradient);
}

template <class T>
Sweep<T>::Sweep(Recording& recording, std::int32_t start, GradPointer<T> seed, RetainGraph retain)
    : recording_(recording.shared_from_this()),
      nodes_(recording.of<T>()),
      retain_(retain),
      observer_(nodes_.observer()),
      states_(static_cast<std::size_t>(start) + 1) {
  states_.back() = {std::move(seed), true};
  recording.begin_backward();
}

// A node's gradient is complete when it is visited: all readers of its output come earlier in the pass.
template <class T> void Sweep<T>::run(bool stop_at_leaves) {
  const auto start = static_cast<std::int32_t>(states_.size()) - 1;
  if (observer_) observer_->started(*recording_, start);
  for (std::int32_t i = start; i >= 0; --i)
    if (state(i).reached && !(stop_at_leaves && nodes_[i].is_leaf())) visit(i);
  deliver(!stop_at_leaves);
}

template <class T> void Sweep<T>::visit(std::int32_t i) {
  Node<T>& node = nodes_[i];  // the reference stays valid while hooks and rules record
  require_usage(node.rule || node.is_leaf(), "backward",
                "the graph was already consumed by an earlier backward(), up to the ", node.operation.name,
                " of shape ", node.shape, "; pass tapegrad::retain_graph to that call");
  for (const std::int32_t input : node.inputs)
    if (input >= 0) state(input).reached = true;

  GradPointer<T> dy = std::move(grad(i));  // null without a contribution
  const bool hooked = dy && call_hooks(i, dy);
  if (observer_) observer_->arrived(i, dy, hooked);
  if (node.slot) grad(i) = copy_if_shared(dy);
  if (node.rule && dy) apply_rule(i, dy);
  if (retain_ == RetainGraph::no) node.rule.reset();  // frees its saved values
}

template <class T> void Sweep<T>::add(std::int32_t i, const GradPointer<T>& gradient) {
  grad(i) = copy_if_shared(grad(i));
  add_to(grad(i), gradient);
}

template <class T> bool Sweep<T>::call_hooks(std::int32_t i, GradPointer<T>& dy) const {
  const typename Hooks<T>::List hooks = nodes_.registered_hooks(i);
  if (hooks.empty()) return false;
  dy = copy_if_shared(dy);
  for (const auto& hook : hooks) {
    (*hook)(*dy);
    require(dy->shape() == nodes_[i].shape, "hook", "expected the gradient of the ", nodes_[i].operation.name,
            " to keep its shape ", nodes_[i].shape, ", got ", dy->shape());
  }
  return true;
}

template <class T> void Sweep<T>::apply_rule(std::int32_t i, const GradPointer<T>& dy) {
  const Node<T>& node = nodes_[i];
  contributions_ = observer_ ? observer_->contributions(node.inputs.size()) : nullptr;
  Gradients<T> dx(*this, node);
  (*node.rule)(*dy, dx);
  if (observer_) observer_->propagated(i, *dy, *this);
}

// Everything is checked before the first gradient changes.
template <class T> void Sweep<T>::deliver(bool to_leaves) {
  static std::atomic<std::uint64_t> sweeps{0};
  const std::uint64_t number = ++sweeps;
  std::size_t parameters = 0;
  const auto for_each_delivery = [&](auto deliver_to) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(states_.size()); ++i) {
      Node<T>& node = nodes_[i];
      if (!state(i).reached || !node.slot || (node.is_leaf() && !to_leaves)) continue;
      Variable<T>* const variable = node.is_parameter ? &node.variable() : nullptr;
      if (variable == nullptr || variable->requires_grad)  // not frozen since it was recorded
        deliver_to(*node.slot, variable, grad(i));
    }
  };
  for_each_delivery([&](GradSlot<T>& slot, Variable<T>* variable, const GradPointer<T>&) {
    if (slot.grad) slot.require_shape("backward", "gradient", variable ? variable->name.c_str() : "", *slot.grad);
    if (variable) ++parameters;
  });
  for_each_delivery([&](GradSlot<T>& slot, Variable<T>* variable, GradPointer<T>& gradient) {
    if (variable) {
      ++variable->sweeps.total;
      variable->last_sweep = number;
      variable->parameters_in_last_sweep = parameters;
    }
    add_to(slot.grad, std::move(gradient));
  });
}

template class Sweep<float>;
template class Sweep<double>;

}  // namespace tapegrad::detail
