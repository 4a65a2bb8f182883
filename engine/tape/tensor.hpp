/// Tensors, the handles that operations take and give, and parameters, the tensors that training changes.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../array/array.hpp"
#include "../array/shape.hpp"

namespace tapegrad {

/// Keeps the recording after a sweep, so that it can be swept again: `loss.backward(tg::retain_graph)`.
enum class RetainGraph : bool { no, yes };
inline constexpr RetainGraph retain_graph = RetainGraph::yes;

/// Looks at a gradient, or changes it.
template <class T> using GradientHook = std::function<void(Array<T>& gradient)>;

/// How many sweeps have reached a parameter since its gradient was cleared. Their gradients have been added up.
struct SweepCount {
  std::size_t total = 0;
  std::size_t before_change = 0;  ///< how many there were when the value first changed; 0 when it did not

  /// Whether gradients at different values of the parameter were added up: zero_grad() was forgotten.
  bool over_changed_values() const { return before_change > 0 && total > before_change; }
};

namespace detail {

/// Where the gradient of a parameter, or of a tensor that retains it, is gathered.
template <class T> struct Leaf {
  Shape shape;
  std::shared_ptr<Array<T>> grad{};   // null until a first gradient arrives
  std::shared_ptr<Array<T>> zeros{};  // what is shown until then
  std::string name{};                 // a parameter's path in its model, once a walk has been over it
  std::vector<GradientHook<T>> hooks{};
  SweepCount sweeps{};  // of a parameter
};

/// Which operation of which tape made a value.
struct Origin {
  std::uint64_t tape = 0;  // tapes are numbered from 1 and never reused
  std::int32_t node = -1;  // -1: nothing recorded made it
};

template <class T> class Recording;

}  // namespace detail

/// A cheap handle on a value that never changes, and on the place of a tape that it was made at. Made from an array it
/// is a constant; gradients flow to parameters.
template <class T> class Tensor {
 public:
  using value_type = T;

  /// No tensor at all: asking for its value throws std::logic_error.
  Tensor() = default;

  /// A constant with a copy of the expression's values.
  template <class E> explicit Tensor(const xt::xexpression<E>& expression) : value_(make_value<T>(expression)) {}

  /// A constant that takes the array over.
  explicit Tensor(Array<T>&& array) : value_(make_value<T>(std::move(array))) {}

  /// A constant that shares the value.
  explicit Tensor(Value<T> value) : value_(std::move(value)) {}

  bool defined() const { return value_ != nullptr; }

  const Array<T>& value() const {
    if (!value_) throw_undefined();
    return *value_;
  }
  const Shape& shape() const { return value().shape(); }
  std::size_t dimension() const { return value().dimension(); }
  std::size_t size() const { return value().size(); }

  /// The value, shared: what a rule captures to save it for the backward sweep.
  const Value<T>& shared_value() const { return value_; }

  /// The only element. Throws std::invalid_argument when there are more or none.
  T item() const;

  /// The same value as a constant: no gradient passes.
  Tensor detach() const { return Tensor(shared_value()); }

  /// Whether gradients flow to or through it: it is a parameter or was recorded.
  bool requires_grad() const { return origin_.node >= 0 || leaf_ != nullptr; }

  /// Keeps this tensor's gradient in the next sweeps, for grad(). Call it while its tape records; parameters always
  /// keep theirs. Throws std::logic_error for a tensor that no living tape of this thread recorded.
  void retain_grad();

  /// The gradient gathered so far; zeros when none has arrived. Throws std::logic_error when it is not kept.
  const Array<T>& grad() const;

  /// Calls the hook with this tensor's gradient in every sweep that comes by, when all of it has arrived and before it
  /// is passed on; what the hook changes, in place, is what counts from there on. Several are called in their order. On
  /// a parameter it sees what one sweep adds, until remove_hooks(); elsewhere it ends with the tape. Throws
  /// std::logic_error for a tensor that is neither a parameter nor recorded on a living tape.
  void register_hook(GradientHook<T> hook);

  /// Gives the tensor a name for reports and errors. A parameter keeps it; any other tensor's is its tape's to keep,
  /// and a constant has none: std::logic_error.
  void set_name(std::string name);
  /// The name given, or a parameter's path in its model ("attention.q_proj.weight"); empty without one.
  std::string name() const;

  /// Whether a gradient has arrived.
  bool has_grad() const { return leaf_ != nullptr && leaf_->grad != nullptr; }

  /// Sweeps the recording backwards from this scalar and adds d(this)/d(parameter) to every parameter's gradient.
  /// The sweep consumes the recording, freeing saved values as it passes, unless `retain_graph` is given.
  /// Throws std::logic_error without a living tape, on a recording consumed before, and when no parameter is reached;
  /// std::invalid_argument when there is more than one element.
  void backward(RetainGraph retain = RetainGraph::no) const;

  /// The same from any shape, with the gradient `seed` of a scalar with respect to this tensor, of its shape.
  void backward(Array<T> seed, RetainGraph retain = RetainGraph::no) const;

 protected:
  Tensor(std::shared_ptr<Array<T>> value, std::shared_ptr<detail::Leaf<T>> leaf)
      : value_(std::move(value)), leaf_(std::move(leaf)) {}

  [[noreturn]] static void throw_undefined();

  // Of the living tape that recorded it; throws std::logic_error naming the operation when there is none.
  detail::Recording<T>& recording_of(const char* operation) const;

  Value<T> value_;
  std::shared_ptr<detail::Leaf<T>> leaf_;
  detail::Origin origin_;

  friend class detail::Recording<T>;
};

/// A tensor that training changes. It is a value: a copy is another parameter that starts with the same numbers and no
/// gradient. Values are shared until one of the sharers is changed, so what a tape has saved never changes under it.
template <class T> class Parameter : public Tensor<T> {
 public:
  /// No parameter, as a Linear without bias has none: walks over a model pass over it.
  Parameter() = default;

  template <class E> explicit Parameter(const xt::xexpression<E>& expression) : Parameter(make_value<T>(expression)) {}
  explicit Parameter(Array<T>&& array) : Parameter(make_value<T>(std::move(array))) {}

  Parameter(const Parameter& other);
  Parameter(Parameter&&) noexcept = default;
  /// Takes over the other's value; recordings of this parameter still reach it when the shape stays the same.
  Parameter& operator=(const Parameter& other);
  Parameter& operator=(Parameter&&) noexcept = default;
  ~Parameter() = default;

  /// Replaces the value. Throws std::invalid_argument when the shape differs.
  void set_value(Array<T> value);

  /// The value for changing in place; recordings and copies keep the old one.
  Array<T>& mutable_value();

  /// Replaces the gradient. Throws std::invalid_argument when the shape differs.
  void set_grad(Array<T> grad);

  /// Forgets the gradient.
  void zero_grad() {
    if (!this->leaf_) return;
    this->leaf_->grad.reset();
    this->leaf_->sweeps = {};
  }

  SweepCount sweeps() const { return this->leaf_ ? this->leaf_->sweeps : SweepCount{}; }

  void remove_hooks() {
    if (this->leaf_) this->leaf_->hooks.clear();
  }

 private:
  explicit Parameter(std::shared_ptr<Array<T>> value);
  void count_change() {
    SweepCount& sweeps = this->leaf_->sweeps;
    if (sweeps.before_change == 0) sweeps.before_change = sweeps.total;
  }
};

/// A model's parameters with the names that reports and checkpoints use, in the order of its fields.
template <class T> using NamedParameters = std::vector<std::pair<std::string, Parameter<T>*>>;

/// A tensor in an error's text: its shape, after its name if it has one: "head.weight (3, 64)".
template <class T> std::string described(const Tensor<T>& x) {
  if (!x.defined()) return "none";
  const std::string name = x.name();
  return (name.empty() ? "" : name + ' ') + to_string(x.shape());
}

/// Prints the values, the shape and the element type.
template <class T> std::ostream& operator<<(std::ostream& out, const Tensor<T>& tensor);

/// Prints the values: `std::cout << loss.grad()` needs no header of xtensor's.
template <class T> std::ostream& operator<<(std::ostream& out, const Array<T>& array);

}  // namespace tapegrad
