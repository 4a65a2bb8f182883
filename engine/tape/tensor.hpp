/// Tensors: inputs and outputs of operations.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../array/array.hpp"
#include "variable.hpp"

namespace tapegrad {

/// Keeps the recording after a backward pass: `loss.backward(tg::retain_graph)`.
enum class RetainGraph : bool { no, yes };
inline constexpr RetainGraph retain_graph = RetainGraph::yes;  ///< Short for RetainGraph::yes.

namespace detail {
template <class T> class Nodes;
template <class T> class Recomputation;
}  // namespace detail

/// A cheap handle to an immutable shared value and to its operation on a tape. A tensor made from an array is a
/// constant; gradients flow to parameters. Accessors of a temporary return copies, so nothing dangles.
template <class T> class Tensor {
 public:
  using value_type = T;  ///< float or double

  /// An undefined tensor: asking for its value throws std::logic_error.
  Tensor() = default;

  /// A constant with a copy of the expression's values. Implicit if they are of type T; else `tg::Tensor<float>(ids)`.
  template <class E>
  explicit(!std::same_as<typename E::value_type, T>) Tensor(const xt::xexpression<E>& expression)
      : value_(make_value<T>(expression)) {}

  Tensor(Array<T>&& array) : value_(make_value<T>(std::move(array))) {}  ///< a constant; moves the array
  Tensor(const std::vector<T>& numbers) : Tensor(array<T>(numbers)) {}   ///< a constant of one axis
  explicit Tensor(Value<T> value) : value_(std::move(value)) {}          ///< a constant; shares the value

  /// Copies the handle. A copy of a parameter as a Tensor holds the parameter's present value.
  Tensor(const Tensor& other)
      : value_(other.shared_value()), slot_(other.slot_), name_(other.name_), origin_(other.origin_) {}
  /// Moves the handle. The moved-from tensor is undefined, unless it is a parameter.
  Tensor(Tensor&& other) noexcept : name_(std::move(other.name_)), origin_(std::exchange(other.origin_, {})) {
    if (other.is_parameter()) {
      value_ = other.variable().value;
      slot_ = other.slot_;
    } else {
      value_ = std::move(other.value_);
      slot_ = std::move(other.slot_);
    }
  }
  /// Throws std::logic_error if the target is a defined parameter seen as a Tensor: set_value() changes its value.
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other);  ///< throws like the copy assignment
  ~Tensor() {                         // in the destructor, because xtensor asks whether types convert to Tensor<void>
    static_assert(std::same_as<T, float> || std::same_as<T, double>,
                  "tapegrad: expected a Tensor of float or double; ids, labels and lengths are a tapegrad::IntArray");
  }

  /// True if it has a value.
  bool defined() const { return shared_value() != nullptr; }

  /// The numbers. Throws std::logic_error if undefined, as do shape(), dimension() and size().
  const Array<T>& value() const& { return *defined_value(); }
  Array<T> value() const&& { return *defined_value(); }                   ///< a copy
  const Shape& shape() const& { return defined_value()->shape(); }        ///< the extents of the axes
  Shape shape() const&& { return defined_value()->shape(); }              ///< a copy
  std::size_t dimension() const { return defined_value()->dimension(); }  ///< the number of axes; 0 for a scalar
  std::size_t size() const { return defined_value()->size(); }            ///< the number of elements

  /// The shared value; null if undefined. A rule captures it to save the value for the backward pass.
  const Value<T>& shared_value() const& { return is_parameter() ? variable().value : value_; }
  Value<T> shared_value() const&& { return is_parameter() ? variable().value : value_; }  ///< a copy of the pointer

  /// The only element. Throws std::invalid_argument unless there is exactly one.
  T item() const;

  /// The same value as a constant: no gradient flows.
  Tensor detach() const { return Tensor(shared_value()); }

  /// True if gradients flow to or through it: it was recorded, or is a parameter and not frozen.
  bool requires_grad() const { return origin_.node >= 0 || (slot_ && variable().requires_grad); }

  /// Accumulates this tensor's gradient for grad(), as parameters do. Throws std::logic_error unless a living tape of
  /// this thread recorded the tensor.
  void retain_grad();

  /// True if a gradient has arrived.
  bool has_grad() const { return slot_ && slot_->grad; }

  /// The gradient accumulated so far, or zeros. Throws std::logic_error for a constant and for a recorded tensor
  /// without retain_grad().
  const Array<T>& grad() const&;
  Array<T> grad() const&& { return static_cast<const Tensor&>(*this).grad(); }  ///< a copy

  /// Calls the hook in every later backward pass with this tensor's complete gradient, before it propagates. Hooks run
  /// in order and may change the gradient, record, and sweep another tape. Parameters keep them until removed, recorded
  /// tensors until the tape ends. Throws std::logic_error for a constant and after the tape has ended.
  HookHandle register_hook(GradientHook<T> hook);

  /// Names the tensor for reports, pages and errors. A constant's name belongs to this handle and later copies. Throws
  /// std::logic_error if undefined, and if its tape has ended.
  void set_name(std::string name);
  /// The given name, or a parameter's path in its model ("attention.q_proj.weight"); empty without one.
  std::string name() const;

  /// Adds d(this)/d(parameter) to every parameter's gradient by a backward pass over the tape. Consumes the recording
  /// and frees its memory unless given `retain_graph`. Throws std::logic_error without a living tape, on a consumed
  /// recording, during another pass of the same tape, and if this tensor was not recorded; std::invalid_argument unless
  /// there is one element. If a rule or hook throws, all gradients are unchanged; without `retain_graph` part of the
  /// recording is consumed.
  void backward(RetainGraph retain = RetainGraph::no) const;

  /// The same for any shape, given the gradient `seed` of a scalar with respect to this tensor.
  void backward(Array<T> seed, RetainGraph retain = RetainGraph::no) const;

 protected:
  explicit Tensor(std::shared_ptr<detail::Variable<T>> variable) noexcept : slot_(std::move(variable)) {}

  // A Parameter's value is in its Variable; other tensors hold theirs.
  bool is_parameter() const { return !value_ && slot_; }
  // A parameter or a handle to one: the slot is a Variable.
  bool has_variable() const { return origin_.node < 0 && slot_; }
  detail::Variable<T>& variable() const { return static_cast<detail::Variable<T>&>(*slot_); }
  const Value<T>& defined_value() const {
    const Value<T>& value = shared_value();
    if (!value) throw_undefined();
    return value;
  }
  [[noreturn]] void throw_undefined() const;

  Value<T> value_;
  std::shared_ptr<detail::GradSlot<T>> slot_;  // of a parameter, or after retain_grad()
  std::shared_ptr<const std::string> name_;    // of a constant
  detail::Origin origin_;

  friend class detail::Nodes<T>;
  friend class detail::Recomputation<T>;
};

/// A tensor in an error's text: "head.weight (3, 64)", "(3, 64)" without a name, "none" if undefined.
template <class T> std::string described(const Tensor<T>& x) {
  if (!x.defined()) return "none";
  const std::string name = x.name();
  return (name.empty() ? "" : name + ' ') + to_string(x.shape());
}

}  // namespace tapegrad
