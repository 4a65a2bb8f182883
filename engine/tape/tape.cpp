#include "tape.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "../array/internal/error.hpp"
#include "../kernels/strided.hpp"

namespace tapegrad {

using detail::require;
using detail::require_usage;

namespace {

thread_local Tape* innermost = nullptr;

std::uint64_t next_tape_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Tape::Tape(const TapeOptions& options)
    : id_(next_tape_id()),
      options_(options),
      outer_(innermost),
      recording_float_(id_, options),
      recording_double_(id_, options) {
  innermost = this;
}

Tape::~Tape() {
  Tape** link = &innermost;  // nearly always the innermost itself; tapes on the heap may end in any order
  while (*link != this) link = &(*link)->outer_;
  *link = outer_;
}

Tape* Tape::current() noexcept { return innermost; }

Tape* Tape::find(std::uint64_t id) noexcept {
  Tape* tape = innermost;
  while (tape != nullptr && tape->id_ != id) tape = tape->outer_;
  return tape;
}

namespace detail {

template <class T> double norm(const Array<T>& x) {
  double squares = 0;
  for (const T& element : x) squares += static_cast<double>(element) * static_cast<double>(element);
  return std::sqrt(squares);
}
template double norm(const Array<float>&);
template double norm(const Array<double>&);

template <class T>
Recording<T>::Recording(std::uint64_t tape, const TapeOptions& options) : tape_(tape), options_(options) {
  if (options_.profile) last_recorded_ = Clock::now();
}

template <class T> std::int32_t Recording<T>::edge(const char* operation, const Tensor<T>& x) {
  if (x.origin_.node >= 0) {
    if (x.origin_.tape == tape_) return x.origin_.node;
    fail<std::logic_error>(
        operation, "expected inputs recorded on this Tape, given ",
        Tape::find(x.origin_.tape) ? "one recorded on an outer Tape" : "a stale one, whose Tape has ended",
        "; detach() makes it a constant");
  }
  if (!x.leaf_) return -1;
  const auto [entry, is_new] = parameters_.try_emplace(x.leaf_.get(), static_cast<std::int32_t>(nodes_.size()));
  if (is_new) add_node({"parameter", x.leaf_->shape, {}, nullptr, x.leaf_, nullptr, true}, 0);
  return entry->second;
}

template <class T>
void Recording<T>::append(const char* operation, Tensor<T>& y, typename Node<T>::Edges inputs,
                          std::shared_ptr<const Rule<T>> rule, std::size_t saved) {
  y.origin_ = {tape_, static_cast<std::int32_t>(nodes_.size())};
  add_node({operation, y.shape(), std::move(inputs), std::move(rule), nullptr, nullptr, false}, saved);
}

template <class T> void Recording<T>::add_node(Node<T> node, std::size_t saved) {
  nodes_.push_back(std::move(node));
  if (!options_.profile) return;
  const auto now = Clock::now();
  const double forward = nodes_.back().is_parameter ? 0 : std::chrono::duration<double>(now - last_recorded_).count();
  profiles_.push_back({.saved = saved, .forward = forward});
  if (!nodes_.back().is_parameter) last_recorded_ = now;
}

template <class T> void Recording<T>::retain_grad(Tensor<T>& y) {
  Node<T>& node = nodes_[static_cast<std::size_t>(y.origin_.node)];
  if (!node.leaf) node.leaf = std::make_shared<Leaf<T>>(Leaf<T>{node.shape});
  y.leaf_ = node.leaf;
}

template <class T> void Recording<T>::register_hook(std::int32_t node, GradientHook<T> hook) {
  hooks_[node].push_back(std::move(hook));
}

template <class T> std::string Recording<T>::name(std::int32_t node) const {
  if (const auto named = names_.find(node); named != names_.end()) return named->second;
  const Node<T>& n = nodes_[static_cast<std::size_t>(node)];
  return n.is_parameter ? n.leaf->name : "";
}

// Marks what the start depends on, so that a sweep that would meet a consumed node fails before it changes anything.
template <class T> void Recording<T>::check_reachable(std::int32_t start) {
  reached_.assign(nodes_.size(), false);
  reached_[static_cast<std::size_t>(start)] = true;
  for (std::int32_t i = start; i >= 0; --i) {
    const Node<T>& node = nodes_[static_cast<std::size_t>(i)];
    if (!reached_[static_cast<std::size_t>(i)] || node.is_parameter) continue;
    require_usage(node.rule != nullptr, "backward", "expected a recording that is whole, but an earlier backward() ",
                  "consumed the ", node.operation, " of shape ", node.shape,
                  "; the earlier one keeps it as backward(tapegrad::retain_graph)");
    for (std::int32_t input : node.inputs)
      if (input >= 0) reached_[static_cast<std::size_t>(input)] = true;
  }
}

template <class T> void Recording<T>::sweep(const Tensor<T>& y, std::shared_ptr<Array<T>> seed, RetainGraph retain) {
  const std::int32_t start = y.origin_.node;
  check_reachable(start);
  nodes_[static_cast<std::size_t>(start)].grad = std::move(seed);
  try {
    // Recording order is a topological order: when the sweep comes to a node, all that used its output has been swept.
    for (std::int32_t i = start; i >= 0; --i)
      if (reached_[static_cast<std::size_t>(i)]) sweep_node(i, retain);
  } catch (...) {
    for (Node<T>& node : nodes_) node.grad.reset();
    throw;
  }
}

template <class T> void Recording<T>::sweep_node(std::int32_t i, RetainGraph retain) {
  const auto index = static_cast<std::size_t>(i);
  const std::shared_ptr<const Rule<T>> rule =
      retain == RetainGraph::yes ? nodes_[index].rule : std::move(nodes_[index].rule);
  const std::shared_ptr<Array<T>> dy = std::move(nodes_[index].grad);
  if (nodes_[index].is_parameter) ++nodes_[index].leaf->sweeps.total;
  if (!dy) return;
  if (nodes_[index].is_parameter) {  // one with hooks: without, gradients go to its leaf at once
    run_hooks(i, nodes_[index].leaf->hooks, *dy);
    Gradient<T>(&nodes_[index].leaf->grad, &nodes_[index].shape) += *dy;
    return;
  }
  if (const auto hooks = hooks_.find(i); hooks != hooks_.end()) run_hooks(i, hooks->second, *dy);
  if (const Node<T>& node = nodes_[index]; node.leaf)  // retained gradients add up over sweeps, as parameters' do
    Gradient<T>(&node.leaf->grad, &node.shape) += *dy;

  const auto start = options_.profile ? Clock::now() : Clock::time_point();
  Gradients<T> dx(*this, i);
  (*rule)(*dy, dx);
  if (options_.profile) {
    profiles_[index].backward = std::chrono::duration<double>(Clock::now() - start).count();
    profiles_[index].gradient_norm = norm(*dy);
  }
  if (options_.detect_anomaly) check_gradients(i);
}

template <class T>
void Recording<T>::run_hooks(std::int32_t node, const std::vector<GradientHook<T>>& hooks, Array<T>& gradient) const {
  const Node<T>& n = nodes_[static_cast<std::size_t>(node)];
  for (const GradientHook<T>& hook : hooks) {
    hook(gradient);
    require(gradient.shape() == n.shape, "hook", "expected the gradient of the ", n.operation, " to keep its shape ",
            n.shape, ", given ", gradient.shape());
  }
}

template class Recording<float>;
template class Recording<double>;

}  // namespace detail

template <class T> std::size_t Gradients<T>::size() const {
  return recording_.nodes_[static_cast<std::size_t>(node_)].inputs.size();
}

template <class T> Gradient<T> Gradients<T>::operator[](std::size_t input) const {
  const detail::Node<T>& node = recording_.nodes_[static_cast<std::size_t>(node_)];
  require_usage(input < node.inputs.size(), node.operation, "the rule of an operation with ", node.inputs.size(),
                " inputs asks for the gradient of input ", input);
  const std::int32_t edge = node.inputs[input];
  if (edge < 0) return Gradient<T>(nullptr, nullptr);
  detail::Node<T>& source = recording_.nodes_[static_cast<std::size_t>(edge)];
  const bool at_once = source.is_parameter && source.leaf->hooks.empty();
  return Gradient<T>(at_once ? &source.leaf->grad : &source.grad, &source.shape);
}

template <class T> Destination<T> Gradient<T>::destination() const {
  if (*slot_) return {(*slot_)->data(), T(1)};
  *slot_ = make_value<T>(*shape_);
  return {(*slot_)->data(), T(0)};
}

template <class T> Array<T>& Gradient<T>::accumulator() const {
  if (!*slot_) *slot_ = make_value<T>(*shape_, T(0));
  return **slot_;
}

template <class T> void Gradient<T>::add(const Array<T>& gradient) const {
  if (!needs_grad()) return;
  if (!*slot_ && gradient.shape() == *shape_)
    *slot_ = make_value<T>(detail::map<T>(gradient, [](T g) { return g; }));
  else
    detail::add_summed(accumulator(), gradient);
}

template <class T> void Gradient<T>::add(Array<T>&& gradient) const {
  if (!needs_grad()) return;
  if (!*slot_ && gradient.shape() == *shape_)
    *slot_ = make_value<T>(std::move(gradient));
  else
    detail::add_summed(accumulator(), gradient);
}

template class Gradient<float>;
template class Gradient<double>;
template class Gradients<float>;
template class Gradients<double>;

}  // namespace tapegrad
