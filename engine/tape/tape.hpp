/// The tape: what is recorded, in which order, and how it is swept backwards.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensor.hpp"

namespace tapegrad {

template <class T> class Gradients;

/// What a tape does besides recording.
struct TapeOptions {
  bool profile = false;  ///< keep for Tape::print what each operation saved, took, and received as gradient
  /// Check every value and gradient: where the first NaN or infinity appears, forward or backward, throw
  /// std::runtime_error naming the operation, its inputs and the path of the layer that it is in or comes after.
  /// Infinity that masked_fill was asked to fill in is let pass.
  bool detect_anomaly = false;
};

/// An input of an operation: a tensor by reference.
template <class T> struct Input {
  const Tensor<T>* tensor;
  Input(const Tensor<T>& t) : tensor(&t) {}
};

namespace detail {

/// A rule: given dy, the gradient of an operation's output, it adds to the gradients dx of the inputs.
template <class T> struct Rule {
  virtual ~Rule() = default;
  virtual void operator()(const Array<T>& dy, Gradients<T>& dx) const = 0;
};

/// An operation on the tape, or a parameter that operations read.
template <class T> struct Node {
  using Edges = xt::svector<std::int32_t, 4>;

  const char* operation;                // "parameter" for a parameter
  Shape shape;                          // of the output
  Edges inputs;                         // the nodes it read; -1 for a constant
  std::shared_ptr<const Rule<T>> rule;  // null for a parameter, and once consumed
  std::shared_ptr<Leaf<T>> leaf;        // of a parameter, or of an output that retains its gradient
  std::shared_ptr<Array<T>> grad;       // what has arrived in the sweep under way
  bool is_parameter;
};

/// The Euclidean norm of all elements.
template <class T> double norm(const Array<T>& x);

/// What a tape that profiles knows of a node; times in seconds.
struct Profile {
  std::size_t saved = 0;      // bytes that the rule holds for the sweep
  double forward = 0;         // since the node before was recorded
  double backward = -1;       // in the rule; below 0 when no sweep has come by
  double gradient_norm = -1;  // of the output's gradient
};

/// The part of a tape that records operations on T.
template <class T> class Recording {
 public:
  Recording(std::uint64_t tape, const TapeOptions& options);

  /// The node that made x, -1 for a constant or an undefined x; throws std::logic_error when x belongs to another tape.
  std::int32_t edge(const char* operation, const Tensor<T>& x);

  /// Records that the operation made y.
  void append(const char* operation, Tensor<T>& y, typename Node<T>::Edges inputs, std::shared_ptr<const Rule<T>> rule,
              std::size_t saved);

  void retain_grad(Tensor<T>& y);
  void register_hook(std::int32_t node, GradientHook<T> hook);
  void set_name(std::int32_t node, std::string name) { names_[node] = std::move(name); }
  /// The name given, the parameter's path, or "".
  std::string name(std::int32_t node) const;

  void sweep(const Tensor<T>& y, std::shared_ptr<Array<T>> seed, RetainGraph retain);

  /// Throws std::runtime_error when y is where NaN or infinity first appears (anomaly.cpp).
  void check_output(const char* operation, const Tensor<T>& y, std::span<const Input<T>> inputs,
                    const typename Node<T>::Edges& edges) const;

  std::size_t size() const { return nodes_.size(); }
  const std::vector<Node<T>, PoolAllocator<Node<T>>>& nodes() const { return nodes_; }
  /// Of each node, when the tape profiles.
  const std::vector<Profile>& profiles() const { return profiles_; }

 private:
  friend class Gradients<T>;
  using Clock = std::chrono::steady_clock;

  void add_node(Node<T> node, std::size_t saved);
  void check_reachable(std::int32_t start);
  void sweep_node(std::int32_t node, RetainGraph retain);
  void run_hooks(std::int32_t node, const std::vector<GradientHook<T>>& hooks, Array<T>& gradient) const;
  void check_gradients(std::int32_t node) const;
  std::string described(const Tensor<T>& x, std::int32_t node) const;
  std::string place(const typename Node<T>::Edges& edges) const;

  std::uint64_t tape_;
  TapeOptions options_;
  std::vector<Node<T>, PoolAllocator<Node<T>>> nodes_;
  std::vector<bool, PoolAllocator<bool>> reached_;  // scratch of a sweep: which nodes the start depends on
  // The node of each parameter that has been read, so that many uses share one.
  std::unordered_map<const Leaf<T>*, std::int32_t, std::hash<const Leaf<T>*>, std::equal_to<>,
                     PoolAllocator<std::pair<const Leaf<T>* const, std::int32_t>>>
      parameters_;

  // What few nodes have.
  std::unordered_map<std::int32_t, std::string> names_;
  std::unordered_map<std::int32_t, std::vector<GradientHook<T>>> hooks_;  // of outputs; a parameter's are its leaf's
  std::vector<Profile> profiles_;
  Clock::time_point last_recorded_;
};

/// Counts the bytes of the Values that are moved in its lifetime, if asked to.
class SavedBytes {
 public:
  explicit SavedBytes(bool counts) {
    if (counts) saved_bytes = &bytes_;
  }
  ~SavedBytes() { saved_bytes = nullptr; }
  SavedBytes(const SavedBytes&) = delete;
  SavedBytes& operator=(const SavedBytes&) = delete;

  std::size_t count() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace detail

/// Records this thread's operations from its construction to the end of its scope. Tapes nest: the innermost records.
/// Without a tape operations compute values alone. Not copied, not moved, destroyed on the thread that made it.
class Tape {
 public:
  explicit Tape(const TapeOptions& options = {});
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// The tape that records on this thread; null without one.
  static Tape* current() noexcept;

  /// This thread's living tape with that number, or null.
  static Tape* find(std::uint64_t id) noexcept;

  /// Operations and parameters recorded so far.
  std::size_t size() const { return recording_float_.size() + recording_double_.size(); }

  const TapeOptions& options() const { return options_; }

  /// Prints a row for each operation and parameter in the order of recording: its number, the operation, its name or
  /// the parameter's path, its shape, the numbers of what it read; with TapeOptions::profile also how many bytes it
  /// saved for the sweep, the times forward and backward, and after a sweep the norm of its gradient.
  void print(std::ostream& out) const;

  /// Writes the recording as a graph for Graphviz: `dot -Tsvg` draws it.
  void to_dot(std::ostream& out) const;

  template <class T> detail::Recording<T>& recording() {
    if constexpr (std::same_as<T, float>)
      return recording_float_;
    else
      return recording_double_;
  }

 private:
  std::uint64_t id_;
  TapeOptions options_;
  Tape* outer_;
  detail::Recording<float> recording_float_;
  detail::Recording<double> recording_double_;
};

/// Where a rule's kernel writes: `data` holds garbage when beta is 0, and a sum to add to when it is 1, as in BLAS.
template <class T> struct Destination {
  T* data;
  T beta;
};

/// The gradient of one input, as the rule sees it.
template <class T> class Gradient {
 public:
  /// Whether anybody needs it: a rule may skip work for constants. Adding to one that nobody needs does nothing.
  bool needs_grad() const { return slot_ != nullptr; }

  /// How many elements the input has. Only for a wanted gradient.
  std::size_t size() const { return element_count(*shape_); }

  /// Adds a gradient of the input's shape, or of one that the input was broadcast to: it is summed back.
  void operator+=(const Array<T>& gradient) const { add(gradient); }
  void operator+=(Array<T>&& gradient) const { add(std::move(gradient)); }
  template <class E> void operator+=(const xt::xexpression<E>& gradient) const {
    if (needs_grad()) add(Array<T>(gradient));
  }

  /// For kernels that accumulate in place. Only for a wanted gradient; ask just before writing, since two inputs may be
  /// the same tensor.
  Destination<T> destination() const;

  /// The gradient's array, zeros at first, to add to here and there. Only for a wanted gradient.
  Array<T>& accumulator() const;

 private:
  friend class Gradients<T>;
  friend class detail::Recording<T>;
  Gradient(std::shared_ptr<Array<T>>* slot, const Shape* shape) : slot_(slot), shape_(shape) {}

  void add(const Array<T>& gradient) const;
  void add(Array<T>&& gradient) const;

  std::shared_ptr<Array<T>>* slot_;
  const Shape* shape_;
};

/// The gradients of all inputs of an operation, numbered as its inputs are.
template <class T> class Gradients {
 public:
  Gradients(detail::Recording<T>& recording, std::int32_t node) : recording_(recording), node_(node) {}
  std::size_t size() const;
  Gradient<T> operator[](std::size_t input) const;

 private:
  detail::Recording<T>& recording_;
  std::int32_t node_;
};

}  // namespace tapegrad
