#include "internal/recording.hpp"

#include <atomic>

#include "../array/internal/error.hpp"
#include "scope.hpp"

namespace tapegrad::detail {
namespace {

std::uint64_t next_tape_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Recordings::Recordings(const TapeOptions& options)
    : id_(next_tape_id()), options_(options), of_float_(id_, options), of_double_(id_, options) {}

template <class T>
Recording<T>::Recording(std::uint64_t tape, const TapeOptions& options) : tape_(tape), options_(options) {
  if (options_.profile) last_recorded_ = Clock::now();
}

template <class T>
template <class... Arguments>
void Recording<T>::add_node(std::size_t saved, Arguments&&... of_node) {
  if (nodes_.empty()) nodes_.reserve(64);  // a small model's step: growing from one node on would move them all often
  if (options_.profile && profiles_.size() == profiles_.capacity()) profiles_.reserve(2 * profiles_.size() + 16);
  nodes_.emplace_back(std::forward<Arguments>(of_node)...);
  if (!options_.profile) return;
  const auto now = Clock::now();
  const double forward = nodes_.back().is_parameter ? 0 : std::chrono::duration<double>(now - last_recorded_).count();
  profiles_.push_back({.saved = saved, .forward = forward});
  if (!nodes_.back().is_parameter) last_recorded_ = now;
}

template <class T> std::int32_t Recording<T>::edge(const char* operation, const Tensor<T>& x) {
  if (x.origin_.node >= 0) {
    if (x.origin_.tape == tape_) return x.origin_.node;
    fail<std::logic_error>(
        operation, "expected inputs recorded on this Tape, given ",
        TapeScope::find(x.origin_.tape) ? "one recorded on an outer Tape" : "a stale one, whose Tape has ended",
        "; detach() makes it a constant");
  }
  if (x.is_constant()) return -1;
  const Leaf<T>& leaf = *x.leaf_;
  if (options_.detect_anomaly) check_parameter(operation, x);
  if (!leaf.requires_grad) return -1;
  require_usage(x.shape() == leaf.shape, operation, "expected a parameter to keep its shape ", leaf.shape, ", given ",
                x);
  if (const auto known = parameters_.find(&leaf); known != parameters_.end()) return known->second;
  const auto number = static_cast<std::int32_t>(nodes_.size());
  add_parameter(x);
  parameters_.emplace(&leaf, number);  // last: memory may end, and no entry may lead to another's node
  return number;
}

template <class T> void Recording<T>::add_parameter(const Tensor<T>& x) {
  if (options_.keep_values) keep(x, {}, {});
  add_node(0, x.leaf_);
}

template <class T> Tensor<T> Recording<T>::stand_in(const Tensor<T>& x) {
  Tensor<T> leaf(x.shared_value());
  append("input", leaf, {}, {}, nullptr, 0);
  if (std::string name = x.name(); !name.empty()) set_name(leaf.origin_.node, std::move(name));
  return leaf;
}

template <class T>
void Recording<T>::append(const Operation& operation, Tensor<T>& y, std::span<const Input<T>> inputs, Edges edges,
                          std::shared_ptr<const Rule<T>> rule, std::size_t saved) {
  if (options_.keep_values) keep(y, inputs, edges);
  y.origin_ = {tape_, static_cast<std::int32_t>(nodes_.size())};
  add_node(saved, operation, y.shape(), std::move(edges), std::move(rule));
}

template <class T> void Recording<T>::retain_grad(Tensor<T>& y) {
  Node<T>& node = this->node(y.origin_.node);
  if (!node.leaf) node.leaf = std::make_shared<Leaf<T>>(Leaf<T>{.shape = node.shape});
  y.leaf_ = node.leaf;
}

template <class T> std::string Recording<T>::name(std::int32_t node) const {
  if (const auto named = names_.find(node); named != names_.end()) return named->second;
  const Node<T>& n = this->node(node);
  return n.is_parameter ? n.leaf->name : "";
}

template <class T>
Entry<T>::Entry(const Operation& operation, const Tensor<T>& y, std::span<const Input<T>> inputs)
    : operation_(operation), inputs_(inputs) {
  Recordings* const recordings = TapeScope::current();
  if (recordings == nullptr) return;
  Recording<T>& recording = recordings->of<T>();
  bool reaches_parameter = false;
  for (const Input<T>& input : inputs) {
    edges_.push_back(recording.edge(operation.name, *input.tensor));
    reaches_parameter |= edges_.back() >= 0;
  }
  if (recordings->options().detect_anomaly) recording.check_output(operation, y, inputs, edges_);
  profiled_ = recordings->options().profile;
  if (reaches_parameter) recording_ = &recording;
}

template <class T> void Entry<T>::append(Tensor<T>& y, std::shared_ptr<const Rule<T>> rule, std::size_t saved) {
  recording_->append(operation_, y, inputs_, std::move(edges_), std::move(rule), saved);
}

template class Recording<float>;
template class Recording<double>;
template class Entry<float>;
template class Entry<double>;

}  // namespace tapegrad::detail
