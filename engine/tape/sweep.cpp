// The sweep backwards: from an operation to all that it depends on, each node after all that used its output.
#include <atomic>
#include <cmath>

#include "../array/internal/error.hpp"
#include "../kernels/strided.hpp"
#include "internal/last_sweep.hpp"
#include "internal/recording.hpp"

namespace tapegrad {

using detail::require_usage;

namespace detail {

template <class T> double norm(const Array<T>& x) {
  double squares = 0;
  for (const T& element : x) squares += static_cast<double>(element) * static_cast<double>(element);
  return std::sqrt(squares);
}

namespace {

// A first gradient is moved in, others are added up; null where none has arrived.
template <class T> void add_gradient(Leaf<T>& leaf, std::shared_ptr<Array<T>> gradient) {
  if (!leaf.grad)
    leaf.grad = std::move(gradient);
  else if (gradient)
    add_summed(*leaf.grad, *gradient);
}

struct UnderWay {
  bool& flag;
  explicit UnderWay(bool& f) : flag(f) { flag = true; }
  ~UnderWay() { flag = false; }
};

}  // namespace

template <class T> void Recordings::sweep(std::int32_t start, std::shared_ptr<Array<T>> seed, RetainGraph retain) {
  require_usage(!sweeping_, "backward", "expected no sweep of this Tape under way, given a call within one, as a hook ",
                "may make it; a Tape of its own can be swept there");
  const std::shared_ptr<Recordings> alive = shared_from_this();  // a hook may end the tape
  const UnderWay under_way(sweeping_);
  of<T>().mark_reachable(start);
  if (options_.keep_values) of_float_.forget_sweep(), of_double_.forget_sweep();
  of<T>().sweep(start, std::move(seed), retain);
}

template <class T>
void Recordings::sweep_part(std::int32_t start, std::shared_ptr<Array<T>> seed, std::span<OuterLeaf<T>> leaves) {
  const UnderWay under_way(sweeping_);
  of<T>().mark_reachable(start);
  of<T>().sweep_part(start, std::move(seed), leaves);
}

// Marks what the start depends on, so that a sweep that would meet a consumed node fails before it changes anything.
template <class T> void Recording<T>::mark_reachable(std::int32_t start) {
  reached_.assign(nodes_.size(), false);
  reached_[static_cast<std::size_t>(start)] = true;
  for (std::int32_t i = start; i >= 0; --i) {
    const Node<T>& n = node(i);
    if (!reached_[static_cast<std::size_t>(i)] || n.is_leaf()) continue;
    require_usage(n.rule != nullptr, "backward", "expected a recording that is whole, but an earlier backward() ",
                  "consumed the ", n.operation.name, " of shape ", n.shape,
                  "; the earlier one keeps it as backward(tapegrad::retain_graph)");
    for (std::int32_t input : n.inputs)
      if (input >= 0) reached_[static_cast<std::size_t>(input)] = true;
  }
}

template <class T> std::vector<std::int32_t> Recording<T>::leaves_of(std::int32_t start) {
  mark_reachable(start);
  std::vector<std::int32_t> leaves;
  for (std::int32_t i = 0; i <= start; ++i)
    if (reached_[static_cast<std::size_t>(i)] && node(i).is_leaf()) leaves.push_back(i);
  return leaves;
}

// Gradients gather on the nodes; leaves get theirs at the end, when nothing can fail any more.
template <class T> void Recording<T>::sweep(std::int32_t start, std::shared_ptr<Array<T>> seed, RetainGraph retain) {
  if (options_.keep_values) last_start_ = start;
  node(start).grad = std::move(seed);
  try {
    arrived_.reserve(parameters_.size());
    // Recording order is a topological order: when the sweep comes to a node, all that used its output has been swept.
    for (std::int32_t i = start; i >= 0; --i)
      if (reached_[static_cast<std::size_t>(i)]) sweep_node(i, retain);
    hand_over_gradients();
  } catch (...) {
    for (Node<T>& node : nodes_) node.grad.reset();
    arrived_.clear();
    contributions_.clear();
    throw;
  }
}

// Leaves go on with the sums that they have in the outer sweep: the numbers are added up in the same order as if their
// operations were on the outer tape, to the same bits. That sweep comes to the leaves themselves later.
template <class T>
void Recording<T>::sweep_part(std::int32_t start, std::shared_ptr<Array<T>> seed, std::span<OuterLeaf<T>> leaves) {
  for (OuterLeaf<T>& leaf : leaves) node(leaf.node).grad = std::move(leaf.gradient);
  node(start).grad = std::move(seed);
  for (std::int32_t i = start; i >= 0; --i)
    if (reached_[static_cast<std::size_t>(i)] && !node(i).is_leaf()) sweep_node(i, RetainGraph::no);
  for (OuterLeaf<T>& leaf : leaves) leaf.gradient = std::move(node(leaf.node).grad);
  for (Arrived& arrived : arrived_) add_gradient(*node(arrived.node).leaf, std::move(arrived.gradient));
}

// Hooks and rules may record, which moves the nodes: none is referred to across a call of them.
template <class T> void Recording<T>::sweep_node(std::int32_t i, RetainGraph retain) {
  const auto index = static_cast<std::size_t>(i);
  const std::shared_ptr<const Rule<T>> rule = retain == RetainGraph::yes ? node(i).rule : std::move(node(i).rule);
  std::shared_ptr<Array<T>> dy = std::move(node(i).grad);
  const bool hooked = dy && run_hooks(i, dy);
  if (options_.keep_values) keep_gradient(i, dy);
  if (options_.detect_anomaly && hooked) check_hooked(i, *dy);
  if (node(i).leaf) arrived_.push_back({i, unshared(dy)});
  if (!rule || !dy) return;  // a parameter, or what nothing was passed on to

  const auto start = options_.profile ? Clock::now() : Clock::time_point();
  if (options_.keep_values) contributions_.assign(node(i).inputs.size(), nullptr);
  Gradients<T> dx(*this, i);
  (*rule)(*dy, dx);
  if (options_.profile) {
    profiles_[index].backward = std::chrono::duration<double>(Clock::now() - start).count();
    profiles_[index].gradient_norm = norm(*dy);
  }
  for (std::size_t n = 0; n < node(i).inputs.size(); ++n) {  // a rule may assign to an accumulator()
    if (node(i).inputs[n] < 0) continue;
    const Node<T>& input = node(node(i).inputs[n]);
    const std::shared_ptr<Array<T>>& gradient = gathered(node(i).inputs[n], n);
    require_usage(!gradient || gradient->shape() == input.shape, node(i).operation.name,
                  "expected the gradient of input ", n, " to have its shape ", input.shape, ", given ",
                  [&] { return to_string(gradient->shape()); });
  }
  if (options_.keep_values) add_up_contributions(i);
  if (options_.detect_anomaly) check_gradients(i);
}

// Where the rule under way adds to the gradient of an input: to what has gathered on its node, or apart from that.
template <class T> std::shared_ptr<Array<T>>& Recording<T>::gathered(std::int32_t node, std::size_t input) {
  return options_.keep_values ? contributions_[input] : this->node(node).grad;
}

// Whether there are any. A hook may add hooks and remove them: those that there are when the gradient has arrived are
// called.
template <class T> bool Recording<T>::run_hooks(std::int32_t i, std::shared_ptr<Array<T>>& gradient) const {
  const Hooks<T>* registered = nullptr;
  if (node(i).is_parameter)
    registered = &node(i).leaf->hooks;
  else if (const auto found = hooks_.find(i); found != hooks_.end())
    registered = &found->second;
  if (registered == nullptr || registered->empty()) return false;
  const Hooks<T> hooks = *registered;
  gradient = unshared(gradient);
  for (const auto& hook : hooks) {
    (*hook)(*gradient);
    require(gradient->shape() == node(i).shape, "hook", "expected the gradient of the ", node(i).operation.name,
            " to keep its shape ", node(i).shape, ", given ", gradient->shape());
  }
  return true;
}

// The operation that read a parameter first: the parameter was put on the tape for it.
template <class T> const char* Recording<T>::first_reader(std::int32_t parameter) const {
  auto i = static_cast<std::size_t>(parameter);
  while (i + 1 < nodes_.size() && nodes_[i].is_parameter) ++i;
  return nodes_[i].operation.name;
}

template <class T> LastSweep<T>& LastSweep<T>::of_this_thread() {
  thread_local LastSweep last;
  return last;
}

template <class T> void LastSweep<T>::begin(std::size_t count) {
  static std::atomic<std::uint64_t> sweeps{0};
  parameters.reserve(count);
  added_ = 0;
  number = ++sweeps;
}

template <class T> void LastSweep<T>::add(const std::shared_ptr<Leaf<T>>& leaf, const char* operation) {
  if (added_ == parameters.size()) parameters.emplace_back();
  Parameter& entry = parameters[added_++];
  if (entry.place != leaf.get()) entry = {leaf.get(), leaf, operation};
  entry.operation = operation;
}

// All is checked, and all memory taken, before the first leaf changes.
template <class T> void Recording<T>::hand_over_gradients() {
  for (const Arrived& arrived : arrived_) {
    const Leaf<T>& leaf = *node(arrived.node).leaf;
    require_usage(
        !leaf.grad || leaf.grad->shape() == leaf.shape, "backward", "expected a gradient to keep the shape of ",
        [&] { return described(arrived.node); }, ", given ", [&] { return to_string(leaf.grad->shape()); });
  }
  LastSweep<T>& reached = LastSweep<T>::of_this_thread();
  reached.begin(arrived_.size());
  for (Arrived& arrived : arrived_) {
    Leaf<T>& leaf = *node(arrived.node).leaf;
    if (!leaf.requires_grad) continue;  // frozen since it was recorded
    if (node(arrived.node).is_parameter) {
      ++leaf.sweeps.total;
      leaf.last_sweep = reached.number;
      reached.add(node(arrived.node).leaf, first_reader(arrived.node));
    }
    add_gradient(leaf, std::move(arrived.gradient));
  }
  arrived_.clear();
  reached.end();
}

#define INSTANTIATE(T)                                                                                       \
  template struct LastSweep<T>;                                                                              \
  template double norm(const Array<T>&);                                                                     \
  template void Recordings::sweep<T>(std::int32_t, std::shared_ptr<Array<T>>, RetainGraph);                  \
  template void Recordings::sweep_part<T>(std::int32_t, std::shared_ptr<Array<T>>, std::span<OuterLeaf<T>>); \
  template std::vector<std::int32_t> Recording<T>::leaves_of(std::int32_t);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace detail

template <class T> std::size_t Gradients<T>::size() const { return recording_.node(node_).inputs.size(); }

template <class T> Gradient<T> Gradients<T>::operator[](std::size_t input) const {
  const detail::Node<T>& node = recording_.node(node_);
  require_usage(input < node.inputs.size(), node.operation.name, "the rule of an operation with ", node.inputs.size(),
                " inputs asks for the gradient of input ", input);
  return {recording_, node.inputs[input], input};
}

template <class T> const Shape& Gradient<T>::shape() const { return recording_->node(node_).shape; }

template <class T> std::shared_ptr<Array<T>>& Gradient<T>::gathered() const {
  return recording_->gathered(node_, input_);
}

template <class T> std::size_t Gradient<T>::size() const { return element_count(shape()); }

template <class T> Destination<T> Gradient<T>::destination() const {
  std::shared_ptr<Array<T>>& sum = gathered();
  if (sum) return {sum->data(), T(1)};
  sum = make_value<T>(shape());
  return {sum->data(), T(0)};
}

template <class T> Array<T>& Gradient<T>::accumulator() const {
  std::shared_ptr<Array<T>>& sum = gathered();
  if (!sum) sum = make_value<T>(shape(), T(0));
  return *sum;
}

template <class T> void Gradient<T>::operator+=(const Array<T>& gradient) const {
  if (!needs_grad()) return;
  if (!gathered() && gradient.shape() == shape())
    *this += detail::map<T>(gradient, [](T g) { return g; });
  else
    detail::add_summed(accumulator(), gradient);
}

template <class T> void Gradient<T>::operator+=(Array<T>&& gradient) const {
  if (!needs_grad()) return;
  if (std::shared_ptr<Array<T>>& sum = gathered(); !sum && gradient.shape() == shape())
    sum = make_value<T>(std::move(gradient));
  else
    detail::add_summed(accumulator(), gradient);
}

template class Gradient<float>;
template class Gradient<double>;
template class Gradients<float>;
template class Gradients<double>;

}  // namespace tapegrad
