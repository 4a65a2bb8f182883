/// The base of all optimizers: groups of parameters with their options, and a state for each parameter.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../engine/tape/parameter_handle.hpp"
#include "../layers/model/fields.hpp"

namespace tapegrad {

/// The interface common to all optimizers.
template <class T> class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Updates every parameter with a gradient; others keep their value and state. Before any change, throws
  /// std::logic_error if the optimizer is the only owner of a parameter, std::invalid_argument if options, possibly
  /// loaded from a file, are out of range, and std::bad_alloc.
  virtual void step() = 0;

  /// Clears the gradients.
  virtual void zero_grad() = 0;

  /// The learning rate of the first group. Throws std::logic_error if the optimizer was moved from.
  virtual double lr() const = 0;

  /// Sets the learning rate of all groups. Throws std::invalid_argument if it is negative or not finite.
  virtual void set_lr(double lr) = 0;

 protected:
  Optimizer() = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;
};

/// An array in a parameter's state, of its shape. It has a value after the parameter's first step.
template <class T> class StateArray {
 public:
  /// Has no value yet.
  explicit StateArray(Shape shape) : shape_(std::move(shape)) {}
  StateArray(const StateArray&) = default;             ///< copies the array
  StateArray& operator=(const StateArray&) = default;  ///< copies the array
  /// Takes over the array: the other one has no value.
  StateArray(StateArray&& other) noexcept : shape_(other.shape_) { *this = std::move(other); }
  /// Takes over the array: the other one has no value.
  StateArray& operator=(StateArray&& other) noexcept {
    shape_ = other.shape_;
    array_ = std::exchange(other.array_, std::nullopt);
    has_value_ = std::exchange(other.has_value_, false);
    return *this;
  }

  const Shape& shape() const& { return shape_; }  ///< the parameter's
  Shape shape() && { return std::move(shape_); }  ///< the same, moved from a temporary
  bool has_value() const { return has_value_; }   ///< true after the first step
  /// The array. Throws std::bad_optional_access without a value.
  const Array<T>& value() const& { return has_value_ ? *array_ : throw std::bad_optional_access(); }
  /// The same, moved from a temporary.
  Array<T> value() && { return has_value_ ? std::move(*array_) : throw std::bad_optional_access(); }

  /// Allocates the memory for mutable_value(), without setting a value.
  void reserve() {
    if (!array_) array_.emplace(shape_, T(0));
  }
  /// The array for changes in place; initially zeros.
  Array<T>& mutable_value() & {
    reserve();
    has_value_ = true;
    return *array_;
  }
  /// Moves in an array of the parameter's shape.
  void set_value(Array<T>&& array) {
    array_ = std::move(array);
    has_value_ = true;
  }
  /// Returns to the state before the first step.
  void reset() {
    array_.reset();
    has_value_ = false;
  }

 private:
  Shape shape_;
  std::optional<Array<T>> array_;  // zeros while only reserved
  bool has_value_ = false;
};

namespace detail {

template <class T> struct FieldStorage<StateArray<T>> : StorageOfShape<FieldStorage<StateArray<T>>> {
  using Number = T;
  static bool has(const StateArray<T>& field) { return field.has_value(); }
  static const Array<T>& get(const StateArray<T>& field) { return field.value(); }
  static Array<T> make(Array<T>&& array) { return std::move(array); }
  static void set(StateArray<T>& field, Array<T>&& made) { field.set_value(std::move(made)); }
  static void reset(StateArray<T>& field) { field.reset(); }
  static const Shape& shape(const StateArray<T>& field) { return field.shape(); }
};

}  // namespace detail

/// The base of the optimizers. Each defines its Options, its State of a parameter, with reserve(options) for all memory
/// of a step, and its formula. Holds the parameters' storage, wherever their model moves. As a field of a run it is
/// saved and loaded with it:
///
///     groups.0.lr                       the options of each group
///     state.layers.0.weight.exp_avg     the state of each parameter, by the parameter's name or else its number
///
/// Movable, not copyable: a copied model has its own parameters and needs its own optimizer. A moved-from optimizer has
/// no parameters, and step() does nothing.
template <class T, class Options_, class State_> class GroupedOptimizer : public Optimizer<T> {
 public:
  using Options = Options_;  ///< of a group
  using State = State_;      ///< of a parameter

  /// Adds parameters with their own options. Throws std::invalid_argument, without adding any, if a parameter is
  /// undefined or already present, or options are out of range.
  void add_group(Parameters<T> parameters, const Options& options);

  void step() override;
  void zero_grad() override;
  double lr() const override;
  void set_lr(double lr) override;

  /// The options of each group, in the order of addition.
  const std::vector<Options>& groups() const& { return groups_; }
  /// The same, moved from a temporary.
  std::vector<Options> groups() && { return std::move(groups_); }
  /// The state of each parameter.
  const std::map<std::string, State>& state() const& { return state_; }
  /// The same, moved from a temporary.
  std::map<std::string, State> state() && { return std::move(state_); }
  /// The state of one parameter. Throws std::invalid_argument for other parameters than the optimizer's.
  State& state(const Parameter<T>& parameter) &;
  /// The parameters, in the order of addition.
  Parameters<T> parameters() const;

  TAPEGRAD_FIELDS(groups_, state_)

 protected:
  /// Makes the first group. Throws like add_group, and without parameters.
  GroupedOptimizer(const char* name, Parameters<T> parameters, const Options& options);

 private:
  struct Member {
    ParameterHandle<Parameter<T>> parameter;
    std::size_t group;
    State* state;  // in state_, whose elements have stable addresses
  };

  /// The size of the memory that update() uses for a parameter of this shape.
  virtual std::size_t memory_size(const Shape&) const { return 0; }

  /// The optimizer's formula: updates a parameter with a gradient, and its state. Must not allocate: by now the value
  /// has no other owner, the state has reserved its arrays, and there is memory of memory_size.
  virtual void update(Parameter<T>& parameter, State& state, const Options& options, T* memory) const = 0;

  const char* name_;  // for messages
  std::vector<Options> groups_;
  std::map<std::string, State> state_;
  std::vector<Member> members_;
};

}  // namespace tapegrad
