#include "internal/sweep.hpp"

#include <atomic>

#include "../array/internal/error.hpp"
#include "../kernels/strided.hpp"
#include "internal/observers.hpp"

namespace tapegrad::detail {
namespace {

// The array, or a copy to change if it has other owners.
template <class T> GradPointer<T> copy_if_shared(const GradPointer<T>& array) {
  return array.use_count() > 1 ? make_value<T>(*array) : array;
}

// Adds a gradient to a sum. The first one becomes the sum.
template <class T> void add_to(GradPointer<T>& sum, GradPointer<T> gradient) {
  if (!sum)
    sum = std::move(gradient);
  else if (gradient)
    add_summed(*sum, *gradient);
}

}  // namespace

template <class T>
Sweep<T>::Sweep(Recording& recording, std::int32_t start, GradPointer<T> seed, RetainGraph retain)
    : recording_(recording.shared_from_this()),
      nodes_(recording.of<T>()),
      retain_(retain),
      observers_(nodes_.observers()),
      slots_(static_cast<std::size_t>(start) + 1) {
  slots_.back() = {std::move(seed), true};
  recording.begin_backward();
  if (observers_ == nullptr) return;
  recording.of<float>().observers()->started(std::same_as<T, float> ? start : -1);
  recording.of<double>().observers()->started(std::same_as<T, double> ? start : -1);
}

// Every node is visited after all nodes that read its output, so its gradient is complete by then.
template <class T> void Sweep<T>::run(bool stop_at_leaves) {
  for (std::size_t i = slots_.size(); i-- > 0;) {
    const auto node = static_cast<std::int32_t>(i);
    if (slots_[i].reached && !(stop_at_leaves && nodes_[node].is_leaf())) visit(node);
  }
  deliver();
}

template <class T> void Sweep<T>::visit(std::int32_t i) {
  Node<T>& node = nodes_[i];
  require_usage(node.rule || node.is_leaf(), "backward",
                "expected a recording that is whole, but an earlier backward() consumed the ", node.operation.name,
                " of shape ", node.shape, "; the earlier one keeps it as backward(tapegrad::retain_graph)");
  for (const std::int32_t input : node.inputs)
    if (input >= 0) slots_[static_cast<std::size_t>(input)].reached = true;

  GradPointer<T> dy = std::move(grad(i));  // null if no operation passed a gradient on
  const bool hooked = dy && call_hooks(i, dy);
  if (observers_) observers_->arrived(i, dy, hooked);
  if (node.slot) deliveries_.push_back({&node, copy_if_shared(dy)});
  if (node.rule && dy) apply_rule(i, dy);
  if (retain_ == RetainGraph::no) node.rule.reset();  // frees what it saved
}

template <class T> bool Sweep<T>::call_hooks(std::int32_t i, GradPointer<T>& dy) const {
  const typename Hooks<T>::List hooks = nodes_.registered_hooks(i);
  if (hooks.empty()) return false;
  dy = copy_if_shared(dy);
  for (const auto& hook : hooks) {
    (*hook)(*dy);
    require(dy->shape() == nodes_[i].shape, "hook", "expected the gradient of the ", nodes_[i].operation.name,
            " to keep its shape ", nodes_[i].shape, ", given ", dy->shape());
  }
  return true;
}

template <class T> void Sweep<T>::apply_rule(std::int32_t i, const GradPointer<T>& dy) {
  const Node<T>& node = nodes_[i];
  contributions_ = observers_ ? observers_->contributions(node.inputs.size()) : nullptr;
  Gradients<T> dx(*this, node);
  (*node.rule)(*dy, dx);
  if (contributions_ != nullptr)
    for (std::size_t n = 0; n < node.inputs.size(); ++n)
      if (GradPointer<T>& added = (*contributions_)[n]) {
        GradPointer<T>& sum = grad(node.inputs[n]);
        sum = copy_if_shared(sum);
        add_to(sum, added);
      }
  if (observers_) observers_->propagated(i, *dy, *this);
}

// Everything is checked before the first gradient changes.
template <class T> void Sweep<T>::deliver() {
  static std::atomic<std::uint64_t> sweeps{0};
  const std::uint64_t number = ++sweeps;
  std::size_t parameters = 0;  // reached, and not frozen since they were read
  for (const Delivery& delivery : deliveries_) {
    const Node<T>& node = *delivery.node;
    if (node.slot->grad)
      node.slot->require_shape("backward", "gradient", node.is_parameter ? node.variable().name.c_str() : "",
                               *node.slot->grad);
    parameters += node.is_parameter && node.variable().requires_grad;
  }
  for (Delivery& delivery : deliveries_) {
    const Node<T>& node = *delivery.node;
    if (node.is_parameter) {
      Variable<T>& variable = node.variable();
      if (!variable.requires_grad) continue;
      ++variable.sweeps.total;
      variable.last_sweep = number;
      variable.reached_with_it = parameters;
    }
    add_to(node.slot->grad, std::move(delivery.grad));
  }
}

template <class T> Gradient<T> Sweep<T>::gradient_of_input(const Node<T>& node, std::size_t input) {
  const std::int32_t edge = node.inputs[input];
  if (edge < 0) return {nullptr, nullptr};
  return {contributions_ != nullptr ? &(*contributions_)[input] : &grad(edge), &nodes_[edge].shape};
}

template class Sweep<float>;
template class Sweep<double>;

}  // namespace tapegrad::detail
