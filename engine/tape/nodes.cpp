#include "internal/nodes.hpp"

#include "../array/internal/error.hpp"
#include "internal/recording.hpp"

namespace tapegrad::detail {

template <class T>
Nodes<T>::Nodes(std::uint64_t tape, const TapeOptions& options)
    : tape_(tape), observer_(make_observer(*this, options)) {}

template <class T> std::int32_t Nodes<T>::find(const char* operation, const Tensor<T>& x) {
  if (x.origin_.node >= 0) {
    if (x.origin_.tape == tape_) return x.origin_.node;
    fail<std::logic_error>(operation, "expected inputs recorded on this Tape, got ",
                           Tape::with_number(x.origin_.tape)
                               ? "one recorded on an outer Tape"
                               : "a stale one, whose Tape has ended, or one of another thread",
                           "; detach() makes it a constant");
  }
  if (!x.has_variable()) return -1;
  Variable<T>& variable = x.variable();
  if (observer_) observer_->reading(operation, x);
  if (!variable.requires_grad) return -1;
  variable.require_shape(operation, "parameter", variable.name.c_str(), x.value());
  if (const std::int32_t known = find_variable(variable); known >= 0) return known;
  return append_parameter(x);
}

template <class T> std::int32_t Nodes<T>::append_parameter(const Tensor<T>& x) {
  const auto node = static_cast<std::int32_t>(size());
  if (observer_) observer_->recording(node, x, {}, {}, nullptr, {});
  nodes_.emplace_back(x.slot_);
  x.variable().last_read = {tape_, node};
  return node;
}

// A parameter stores only its last reader. If that is a newer, nested tape, this tape may still have read it before.
template <class T> std::int32_t Nodes<T>::find_variable(Variable<T>& variable) const {
  if (variable.last_read.tape == tape_) return variable.last_read.node;
  if (variable.last_read.tape < tape_) return -1;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].slot.get() == &variable) {
      variable.last_read = {tape_, static_cast<std::int32_t>(i)};
      return variable.last_read.node;
    }
  return -1;
}

template <class T>
void Nodes<T>::append(const Operation& operation, Tensor<T>& y, const Inputs<T>& inputs, Edges&& edges,
                      std::shared_ptr<const Rule<T>>&& rule, const Describe<T>& describe) {
  const auto node = static_cast<std::int32_t>(size());
  if (observer_) observer_->recording(node, y, inputs, edges, rule.get(), describe);
  nodes_.emplace_back(operation, y.value().shape(), std::move(edges), std::move(rule));
  y.origin_ = {tape_, node};
}

template <class T> void Nodes<T>::retain_grad(Tensor<T>& y) {
  Node<T>& node = (*this)[y.origin_.node];
  if (!node.slot) node.slot = std::make_shared<GradSlot<T>>(node.shape);
  y.slot_ = node.slot;
}

template <class T> typename Hooks<T>::List Nodes<T>::registered_hooks(std::int32_t i) const {
  if ((*this)[i].is_parameter) return (*this)[i].variable().hooks.registered();
  const auto found = hooks_.empty() ? hooks_.end() : hooks_.find(i);
  return found == hooks_.end() ? typename Hooks<T>::List() : found->second.registered();
}

template <class T> std::string Nodes<T>::name(std::int32_t i) const {
  if (const auto named = names_.find(i); named != names_.end()) return named->second;
  return (*this)[i].is_parameter ? (*this)[i].variable().name : "";
}

template <class T>
bool find_inputs(const Operation& operation, const Tensor<T>& y, const Inputs<T>& inputs, Edges& edges) {
  Recording* const recording = Tape::current();
  if (recording == nullptr) return false;
  Nodes<T>& nodes = recording->of<T>();
  bool requires_grad = false;
  for (const Input<T>& input : inputs) {
    edges.push_back(nodes.find(operation.name, *input.tensor));
    requires_grad |= edges.back() >= 0;
  }
  if (nodes.observer()) nodes.observer()->computed(operation, y, inputs, edges);
  return requires_grad;
}

template <class T>
void append(const Operation& operation, Tensor<T>& y, const Inputs<T>& inputs, Edges&& edges,
            std::shared_ptr<const Rule<T>> rule, const Describe<T>& describe) {
  Tape::current()->of<T>().append(operation, y, inputs, std::move(edges), std::move(rule), describe);
}

#define INSTANTIATE(T)                                                                                          \
  template class Nodes<T>;                                                                                      \
  template bool find_inputs(const Operation&, const Tensor<T>&, const Inputs<T>&, Edges&);                      \
  template void append(const Operation&, Tensor<T>&, const Inputs<T>&, Edges&&, std::shared_ptr<const Rule<T>>, \
                       const Describe<T>&);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad::detail
