/// Tensors, the handles that operations take and give.
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../array/array.hpp"
#include "../array/from.hpp"
#include "../array/shape.hpp"
#include "leaf.hpp"

namespace tapegrad {

/// Keeps the recording after a sweep, so that it can be swept again: `loss.backward(tg::retain_graph)`.
enum class RetainGraph : bool { no, yes };
inline constexpr RetainGraph retain_graph = RetainGraph::yes;  ///< Short for RetainGraph::yes.

namespace detail {

/// Which operation of which tape made a value.
struct Origin {
  std::uint64_t tape = 0;  // tapes are numbered from 1 and never reused
  std::int32_t node = -1;  // -1: nothing recorded made it
};

template <class T> class Recording;
template <class T> class Recomputation;

}  // namespace detail

/// A cheap handle on a value that never changes, and on the place of a tape that it was made at. Made from an array it
/// is a constant; gradients flow to parameters.
template <class T> class Tensor {
 public:
  using value_type = T;  ///< float or double

  /// No tensor at all: asking for its value throws std::logic_error.
  Tensor() = default;

  /// A constant with a copy of the expression's values. An array or expression of T converts by itself where a tensor
  /// is expected, `model(x)`; one of other numbers is converted when asked, `tg::Tensor<float>(ids)`.
  template <class E>
  explicit(!std::same_as<typename E::value_type, T>) Tensor(const xt::xexpression<E>& expression)
      : value_(make_value<T>(expression)) {}

  /// A constant that takes the array over.
  Tensor(Array<T>&& array) : value_(make_value<T>(std::move(array))) {}

  /// A constant of one axis; `tg::tensor` takes numbers in braces, and a shape.
  Tensor(const std::vector<T>& numbers) : Tensor(array<T>(numbers)) {}

  /// A constant that shares the value.
  explicit Tensor(Value<T> value) : value_(std::move(value)) {}

  /// Of a parameter, a handle on the value that it has now.
  Tensor(const Tensor& other) : value_(other.shared_value()), leaf_(other.leaf_), origin_(other.origin_) {}
  /// The same handle; what it is moved from is no tensor any more, unless that is a parameter.
  Tensor(Tensor&& other) noexcept : origin_(std::exchange(other.origin_, {})) {
    if (other.is_parameter()) {
      value_ = other.leaf_->value;
      leaf_ = other.leaf_;
    } else {
      value_ = std::move(other.value_);
      leaf_ = std::move(other.leaf_);
    }
  }
  /// Throws std::logic_error when what is assigned to is a parameter, seen as the Tensor that it also is: set_value()
  /// changes its value.
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  /// Throws as the other assignment.
  Tensor& operator=(Tensor&& other) {
    if (is_parameter()) refuse_assignment();
    Tensor taken(std::move(other));
    value_ = std::move(taken.value_);
    leaf_ = std::move(taken.leaf_);
    origin_ = taken.origin_;
    return *this;
  }
  ~Tensor() {  // and not where xtensor only asks whether something converts to a Tensor<void>
    static_assert(std::same_as<T, float> || std::same_as<T, double>,
                  "tapegrad: a Tensor is of float or double; ids, labels and lengths are a tapegrad::IntArray");
  }

  /// Whether it is a tensor at all. Where it is none, its value and shape throw std::logic_error.
  bool defined() const { return shared_value() != nullptr || is_in_bfloat16(); }

  /// The numbers. Throws std::logic_error where they are held in bfloat16.
  const Array<T>& value() const {
    const Value<T>& value = shared_value();
    if (!value) throw_undefined();
    return *value;
  }
  /// The extents of its axes.
  const Shape& shape() const {
    const Value<T>& value = shared_value();
    return value ? value->shape() : bfloat16().shape();
  }
  std::size_t dimension() const { return shape().size(); }  ///< how many axes it has; 0 for a scalar
  /// How many elements it has.
  std::size_t size() const {
    const Value<T>& value = shared_value();
    return value ? value->size() : bfloat16().size();
  }

  /// Whether it is a parameter that is held in bfloat16, or a handle on one: see Parameter::hold_in_bfloat16.
  bool is_in_bfloat16() const { return is_parameter() && leaf_->bfloat16; }
  /// The numbers of such a parameter. Throws std::logic_error for others.
  const Array<BFloat16>& bfloat16() const {
    if (!is_in_bfloat16()) throw_undefined();
    return *leaf_->bfloat16;
  }
  /// The same, shared, for a rule to capture; null for others.
  std::shared_ptr<const Array<BFloat16>> shared_bfloat16() const {
    return is_in_bfloat16() ? leaf_->bfloat16 : nullptr;
  }

  /// The value, shared: what a rule captures to save it for the backward sweep.
  const Value<T>& shared_value() const { return is_parameter() ? leaf_->value : value_; }

  /// The only element. Throws std::invalid_argument when there are more or none.
  T item() const;

  /// The same value as a constant: no gradient passes.
  Tensor detach() const { return Tensor(shared_value()); }

  /// Whether gradients flow to or through it: it was recorded, or is a parameter that is not frozen.
  bool requires_grad() const { return origin_.node >= 0 || (leaf_ && leaf_->requires_grad); }

  /// Keeps this tensor's gradient in the next sweeps, for grad(). Call it while its tape records; parameters always
  /// keep theirs. Throws std::logic_error for a tensor that no living tape of this thread recorded.
  void retain_grad();

  /// The gradient gathered so far; zeros when none has arrived. Throws std::logic_error when it is not kept.
  const Array<T>& grad() const;

  /// Calls the hook with this tensor's gradient in every sweep that comes by, when all of it has arrived and before it
  /// is passed on; what the hook changes, in place, is what counts from there on. Several are called in their order;
  /// one that is added during a sweep begins with the next. On a parameter it sees what one sweep adds, until
  /// the handle or remove_hooks() removes it; elsewhere it ends with the tape. A hook may compute, record, and use a
  /// tape of its own; it may not sweep the tape whose sweep has called it. Throws std::logic_error for a tensor that is
  /// neither a parameter nor recorded on a living tape.
  HookHandle register_hook(GradientHook<T> hook);

  /// Gives the tensor a name for reports, pages and errors. A parameter keeps it, and a recorded tensor's is its tape's
  /// to keep; a constant's goes with this handle and with copies of it made from then on. Throws std::logic_error for a
  /// stale tensor, and for none at all.
  void set_name(std::string name);
  /// The name given, or a parameter's path in its model ("attention.q_proj.weight"); empty without one.
  std::string name() const;

  /// Whether a gradient has arrived.
  bool has_grad() const { return leaf_ != nullptr && leaf_->grad != nullptr; }

  /// Sweeps the recording backwards from this scalar and adds d(this)/d(parameter) to every parameter's gradient.
  /// The sweep consumes the recording, freeing saved values as it passes, unless `retain_graph` is given.
  /// Throws std::logic_error without a living tape, on a recording consumed before, within another sweep of the same
  /// tape, and when no parameter is reached; std::invalid_argument when there is more than one element. When it throws,
  /// or a rule or a hook does, every gradient is as it was before; the recording may be consumed in part.
  void backward(RetainGraph retain = RetainGraph::no) const;

  /// The same from any shape, with the gradient `seed` of a scalar with respect to this tensor, of its shape.
  void backward(Array<T> seed, RetainGraph retain = RetainGraph::no) const;

 protected:
  explicit Tensor(std::shared_ptr<detail::Leaf<T>> leaf) noexcept : leaf_(std::move(leaf)) {}

  // A Parameter's value lies in its leaf; every other tensor has its own.
  bool is_parameter() const { return !value_ && leaf_; }

  // Neither recorded nor a parameter or a handle on one. A leaf of its own then holds no more than its name.
  bool is_constant() const { return origin_.node < 0 && !(leaf_ && (leaf_->value || leaf_->bfloat16)); }

  [[noreturn]] void throw_undefined() const;
  [[noreturn]] void refuse_assignment() const;

  Value<T> value_;
  std::shared_ptr<detail::Leaf<T>> leaf_;
  detail::Origin origin_;

  friend class detail::Recording<T>;
  friend class detail::Recomputation<T>;
};

/// A constant from numbers in braces or any range of them, in row-major order under a shape, as array and int_array
/// make arrays: `tg::tensor({{1, 2}, {3, 4}})`, `tg::tensor<double>(vector, {2, 3})`.
template <class T = float> Tensor<T> tensor(const detail::Braces<T>& numbers) { return numbers.array(); }
/// The n numbers of a range, of shape (n).
template <class T = float, std::ranges::sized_range Numbers> Tensor<T> tensor(const Numbers& numbers) {
  return array<T>(numbers);
}
/// The numbers of a range under a shape. Throws std::invalid_argument when it has another count of elements.
template <class T = float, std::ranges::sized_range Numbers>
Tensor<T> tensor(const Numbers& numbers, const Shape& shape) {
  return array<T>(numbers, shape);
}

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
