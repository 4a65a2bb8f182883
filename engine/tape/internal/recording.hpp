/// What a tape has recorded, and how it is swept backwards. For the library's own sources.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../record.hpp"
#include "../tape_options.hpp"

namespace tapegrad::detail {

/// An operation on the tape, or a leaf: a parameter that operations read, or what stands for a tensor of an outer tape.
template <class T> struct Node {
  Operation operation;                  // "parameter" for a parameter, "input" for what stands for a tensor
  Shape shape;                          // of the output
  Edges inputs;                         // the nodes it read; -1 for a constant
  std::shared_ptr<const Rule<T>> rule;  // null for a parameter, and once consumed
  std::shared_ptr<Leaf<T>> leaf;        // of a parameter, or of an output that retains its gradient
  std::shared_ptr<Array<T>> grad;       // what has arrived in the sweep under way
  bool is_parameter = false;

  bool is_leaf() const { return inputs.empty(); }  // an operation is recorded for the gradient of one input at least

  Node(const Operation& made_by, const Shape& of, Edges&& read, std::shared_ptr<const Rule<T>>&& backward)
      : operation(made_by), shape(of), inputs(std::move(read)), rule(std::move(backward)) {}
  explicit Node(const std::shared_ptr<Leaf<T>>& parameter)
      : operation("parameter"), shape(parameter->shape), leaf(parameter), is_parameter(true) {}
};

/// The Euclidean norm of all elements.
template <class T> double norm(const Array<T>& x);

/// The array, or a copy for changing it where somebody else holds it too, as what is kept to be looked at.
template <class T> std::shared_ptr<Array<T>> unshared(const std::shared_ptr<Array<T>>& array) {
  return array.use_count() > 1 ? make_value<T>(*array) : array;
}

/// What a tape that profiles knows of a node; times in seconds.
struct Profile {
  std::size_t saved = 0;     // bytes that the rule holds for the sweep
  double forward = 0;        // since the node before was recorded
  double backward = -1;      // in the rule; below 0 when no sweep has come by
  double gradient_norm = 0;  // of the output's gradient in that sweep
};

/// What a tape that keeps values knows of a node.
template <class T> struct KeptNode {
  /// An input that is no node: a frozen parameter has its name, an undefined input no value.
  struct Constant {
    Value<T> value;
    std::string name;
  };

  Value<T> value;                   // of the output; a parameter's as it was when it was first read
  std::vector<Constant> constants;  // numbered as the inputs are; nothing for one that is a node

  // What an operation keeps for readers beside its value, by names: attention's "weights".
  std::map<std::string, Value<T>> beside;

  // Of the tape's last sweep, on T or not.
  bool reached = false;                 // it came by
  Value<T> gradient;                    // what arrived, after hooks; null when nothing did
  std::vector<Value<T>> contributions;  // what the rule added to each input's gradient; empty when it did not run
};

/// Where anomaly mode found NaN or infinity.
struct Anomaly {
  std::int32_t node;  // the operation that made it, or the parameter that has it
  bool backward;      // it was made by the operation's rule, or by a hook of its output's gradient
  std::string text;   // of the error
};

/// A leaf of a tape whose sweep is a part of another's: its node, and what has arrived in that sweep.
template <class T> struct OuterLeaf {
  std::int32_t node;
  std::shared_ptr<Array<T>> gradient;  // null for nothing yet
};

class Recordings;

/// The part of a tape that records operations on T.
template <class T> class Recording {
 public:
  Recording(std::uint64_t tape, const TapeOptions& options);

  /// The node that made x, -1 for a constant, a frozen parameter or an undefined x. Throws std::logic_error when x
  /// belongs to another tape and when a parameter's value has got another shape, through mutable_value(); in anomaly
  /// mode std::runtime_error for a parameter that is not finite.
  std::int32_t edge(const char* operation, const Tensor<T>& x);

  /// Records that the operation made y.
  void append(const Operation& operation, Tensor<T>& y, std::span<const Input<T>> inputs, Edges edges,
              std::shared_ptr<const Rule<T>> rule, std::size_t saved);

  /// A leaf that stands for x, which an outer tape has recorded, and has its value and name.
  Tensor<T> stand_in(const Tensor<T>& x);

  /// The nodes of the leaves that an operation depends on.
  std::vector<std::int32_t> leaves_of(std::int32_t start);

  /// Keeps an array beside the value of y, which this tape recorded and keeps.
  void keep_beside(const Tensor<T>& y, const char* name, Array<T> array);

  void retain_grad(Tensor<T>& y);
  Hooks<T>& hooks(std::int32_t node) { return hooks_[node]; }
  void set_name(std::int32_t node, std::string name) { names_[node] = std::move(name); }
  /// The name given, the parameter's path, or "".
  std::string name(std::int32_t node) const;

  /// Throws std::runtime_error when y is where NaN or infinity first appears (anomaly.cpp). A tape that keeps values
  /// has then recorded it, to be looked at.
  void check_output(const Operation& operation, const Tensor<T>& y, std::span<const Input<T>> inputs,
                    const Edges& edges);

  std::size_t size() const { return nodes_.size(); }
  const std::vector<Node<T>, PoolAllocator<Node<T>>>& nodes() const { return nodes_; }
  /// Of each node, when the tape profiles.
  const std::vector<Profile>& profiles() const { return profiles_; }
  /// Of each node, when the tape keeps values.
  const std::vector<KeptNode<T>>& kept() const { return kept_; }
  /// The node that the tape's last sweep began at, when it keeps values; -1 before any and when it was not on T.
  std::int32_t last_start() const { return last_start_; }
  /// What anomaly mode found since the last sweep began, when the tape keeps values.
  const std::optional<Anomaly>& anomaly() const { return anomaly_; }

 private:
  friend class Recordings;
  friend class Gradients<T>;
  friend class Gradient<T>;
  using Clock = std::chrono::steady_clock;

  Node<T>& node(std::int32_t i) { return nodes_[static_cast<std::size_t>(i)]; }
  const Node<T>& node(std::int32_t i) const { return nodes_[static_cast<std::size_t>(i)]; }

  void add_parameter(const Tensor<T>& x);
  template <class... Arguments> void add_node(std::size_t saved, Arguments&&... of_node);

  void mark_reachable(std::int32_t start);
  void sweep(std::int32_t start, std::shared_ptr<Array<T>> seed, RetainGraph retain);
  void sweep_part(std::int32_t start, std::shared_ptr<Array<T>> seed, std::span<OuterLeaf<T>> leaves);
  void sweep_node(std::int32_t i, RetainGraph retain);
  std::shared_ptr<Array<T>>& gathered(std::int32_t node, std::size_t input);
  bool run_hooks(std::int32_t i, std::shared_ptr<Array<T>>& gradient) const;
  void hand_over_gradients();
  const char* first_reader(std::int32_t parameter) const;

  void keep(const Tensor<T>& y, std::span<const Input<T>> inputs, const Edges& edges);
  void forget_sweep();
  void keep_gradient(std::int32_t i, const std::shared_ptr<Array<T>>& dy);
  void add_up_contributions(std::int32_t i);

  void check_parameter(const char* operation, const Tensor<T>& x);
  void check_gradients(std::int32_t i);
  void check_hooked(std::int32_t i, const Array<T>& gradient);
  [[noreturn]] void fail_at(std::int32_t node, bool backward, std::string text);
  std::string described(std::int32_t node) const;
  std::string described(const Tensor<T>& x, std::int32_t node) const;
  std::string place(const Edges& edges) const;

  std::uint64_t tape_;
  TapeOptions options_;
  std::vector<Node<T>, PoolAllocator<Node<T>>> nodes_;
  // The node of each parameter that has been read, so that many uses share one.
  std::unordered_map<const Leaf<T>*, std::int32_t, std::hash<const Leaf<T>*>, std::equal_to<>,
                     PoolAllocator<std::pair<const Leaf<T>* const, std::int32_t>>>
      parameters_;

  // Of the sweep under way.
  std::vector<bool, PoolAllocator<bool>> reached_;  // the nodes that its start depends on
  struct Arrived {
    std::int32_t node;
    std::shared_ptr<Array<T>> gradient;  // null when no operation passed one on
  };
  std::vector<Arrived, PoolAllocator<Arrived>> arrived_;  // at leaves, to be handed over at its end
  std::vector<std::shared_ptr<Array<T>>> contributions_;  // of the rule under way, when the tape keeps values

  // What few nodes have.
  std::unordered_map<std::int32_t, std::string> names_;
  std::unordered_map<std::int32_t, Hooks<T>> hooks_;  // of outputs; a parameter's are its leaf's
  std::vector<Profile> profiles_;
  Clock::time_point last_recorded_;
  std::vector<KeptNode<T>> kept_;
  std::int32_t last_start_ = -1;
  std::optional<Anomaly> anomaly_;
};

/// All that one tape records.
class Recordings : public std::enable_shared_from_this<Recordings> {
 public:
  explicit Recordings(const TapeOptions& options);

  std::uint64_t id() const { return id_; }
  const TapeOptions& options() const { return options_; }

  template <class T> const Recording<T>& of() const {
    if constexpr (std::same_as<T, float>)
      return of_float_;
    else
      return of_double_;
  }
  template <class T> Recording<T>& of() { return const_cast<Recording<T>&>(std::as_const(*this).of<T>()); }

  /// Sweeps backwards from a tensor of this tape. Throws std::logic_error while a sweep of it is under way.
  template <class T> void sweep(std::int32_t start, std::shared_ptr<Array<T>> seed, RetainGraph retain);

  /// The same as a part of the sweep of another tape, whose leaves these are: what arrives is added to what they have
  /// there, nothing is handed over, and no parameter's hook is called. Once: the tape is of no use afterwards.
  template <class T>
  void sweep_part(std::int32_t start, std::shared_ptr<Array<T>> seed, std::span<OuterLeaf<T>> leaves);

 private:
  std::uint64_t id_;
  TapeOptions options_;
  bool sweeping_ = false;
  Recording<float> of_float_;
  Recording<double> of_double_;
};

}  // namespace tapegrad::detail
