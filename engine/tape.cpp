#include "tape.hpp"

#include <algorithm>
#include <atomic>

#include "error.hpp"
#include "kernels/strided.hpp"

namespace tapegrad {

using detail::require_usage;

namespace {

thread_local Tape* innermost = nullptr;

std::uint64_t next_tape_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Tape::Tape() : id_(next_tape_id()), outer_(innermost), recording_float_(id_), recording_double_(id_) {
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
  if (is_new) nodes_.push_back({"parameter", x.leaf_->shape, {}, nullptr, x.leaf_, nullptr, true});
  return entry->second;
}

template <class T>
void Recording<T>::append(const char* operation, Tensor<T>& y, typename Node<T>::Edges inputs,
                          std::shared_ptr<const Rule<T>> rule) {
  y.origin_ = {tape_, static_cast<std::int32_t>(nodes_.size())};
  nodes_.push_back({operation, y.shape(), std::move(inputs), std::move(rule), nullptr, nullptr, false});
}

template <class T> void Recording<T>::retain_grad(Tensor<T>& y) {
  Node<T>& node = nodes_[static_cast<std::size_t>(y.origin_.node)];
  if (!node.leaf) node.leaf = std::make_shared<Leaf<T>>(Leaf<T>{node.shape, nullptr});
  y.leaf_ = node.leaf;
}

// Marks what the start depends on, so that a sweep that would meet a consumed node fails before it changes anything.
template <class T> void Recording<T>::check_reachable(std::int32_t start) {
  reached_.assign(nodes_.size(), false);
  reached_[static_cast<std::size_t>(start)] = true;
  for (std::int32_t i = start; i >= 0; --i) {
    const Node<T>& node = nodes_[static_cast<std::size_t>(i)];
    if (!reached_[static_cast<std::size_t>(i)] || node.is_parameter) continue;
    require_usage(node.rule != nullptr, "backward", "expected a recording that is whole, but an earlier backward() ",
                  "consumed the ", node.operation, " of shape ", to_string(node.shape),
                  "; the earlier one keeps it as backward(tapegrad::retain_graph)");
    for (std::int32_t input : node.inputs)
      if (input >= 0) reached_[static_cast<std::size_t>(input)] = true;
  }
}

template <class T> void Recording<T>::sweep(const Tensor<T>& y, std::shared_ptr<Array<T>> seed, RetainGraph retain) {
  const std::int32_t start = y.origin_.node;
  check_reachable(start);
  nodes_[static_cast<std::size_t>(start)].grad = std::move(seed);
  // Recording order is a topological order: when the sweep comes to a node, all that used its output has been swept.
  for (std::int32_t i = start; i >= 0; --i) {
    const auto index = static_cast<std::size_t>(i);
    if (!reached_[index] || nodes_[index].is_parameter) continue;
    const std::shared_ptr<const Rule<T>> rule =
        retain == RetainGraph::yes ? nodes_[index].rule : std::move(nodes_[index].rule);
    const std::shared_ptr<Array<T>> dy = std::move(nodes_[index].grad);
    if (!dy) continue;
    try {
      Gradients<T> dx(*this, i);
      (*rule)(*dy, dx);
    } catch (...) {
      for (Node<T>& node : nodes_) node.grad.reset();
      throw;
    }
    if (const Node<T>& node = nodes_[index]; node.leaf) {  // retained gradients add up over sweeps, as parameters' do
      Gradient<T>(&node.leaf->grad, &node.shape) += *dy;
    }
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
  return Gradient<T>(source.is_parameter ? &source.leaf->grad : &source.grad, &source.shape);
}

template <class T> Destination<T> Gradient<T>::destination() const {
  if (*slot_) return {(*slot_)->data(), T(1)};
  *slot_ = make_value<T>(*shape_);
  return {(*slot_)->data(), T(0)};
}

template <class T> Array<T>& Gradient<T>::zeros_or_sum() const {
  if (!*slot_) *slot_ = make_value<T>(*shape_, T(0));
  return **slot_;
}

template <class T> void Gradient<T>::add(const Array<T>& gradient) const {
  if (!wanted()) return;
  if (!*slot_ && gradient.shape() == *shape_)
    *slot_ = make_value<T>(gradient);
  else
    detail::add_summed(zeros_or_sum(), gradient);
}

template <class T> void Gradient<T>::add(Array<T>&& gradient) const {
  if (!wanted()) return;
  if (!*slot_ && gradient.shape() == *shape_)
    *slot_ = make_value<T>(std::move(gradient));
  else
    detail::add_summed(zeros_or_sum(), gradient);
}

template class Gradient<float>;
template class Gradient<double>;
template class Gradients<float>;
template class Gradients<double>;

}  // namespace tapegrad
