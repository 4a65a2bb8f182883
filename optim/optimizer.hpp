/// What all optimizers have: groups of parameters with options of their own, and a state for each parameter.
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

/// What a program that leaves the choice of the optimizer open needs to know of it.
template <class T> class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Changes every parameter that has a gradient; the others keep their value and state. Throws, before anything
  /// changes, std::logic_error when nobody but the optimizer holds one of the parameters any more,
  /// std::invalid_argument for options outside their range, which a file may have brought, and std::bad_alloc.
  virtual void step() = 0;

  /// Forgets the gradients.
  virtual void zero_grad() = 0;

  /// The learning rate of the first group.
  virtual double lr() const = 0;

  /// Sets the learning rate of all groups. Throws std::invalid_argument for one that is negative or not finite.
  virtual void set_lr(double lr) = 0;

 protected:
  Optimizer() = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;
};

/// An array of a parameter's shape in its state, there from the parameter's first step on.
template <class T> class StateArray {
 public:
  /// Without a value.
  explicit StateArray(Shape shape) : shape_(std::move(shape)) {}

  const Shape& shape() const& { return shape_; }  ///< the parameter's
  Shape shape() && { return std::move(shape_); }  ///< the same, moved from a temporary
  bool has_value() const { return has_value_; }   ///< whether there was a step
  /// The array. Throws std::bad_optional_access when there is none.
  const Array<T>& value() const& { return has_value_ ? *array_ : throw std::bad_optional_access(); }
  /// The same, moved from a temporary.
  Array<T> value() && { return has_value_ ? std::move(*array_) : throw std::bad_optional_access(); }

  /// Takes the memory that mutable_value() needs; there is no value yet.
  void reserve() {
    if (!array_) array_.emplace(shape_, T(0));
  }
  /// For changing in place; zeros the first time.
  Array<T>& mutable_value() & {
    reserve();
    has_value_ = true;
    return *array_;
  }
  /// Takes the array, of the parameter's shape, over.
  void set_value(Array<T>&& array) {
    array_ = std::move(array);
    has_value_ = true;
  }
  /// As before the first step.
  void reset() {
    array_.reset();
    has_value_ = false;
  }

 private:
  Shape shape_;
  std::optional<Array<T>> array_;  // zeros as long as they are only reserved
  bool has_value_ = false;
};

namespace detail {

template <class T> struct Kept<StateArray<T>> : KeptInShape<Kept<StateArray<T>>> {
  using Number = T;
  static bool has(const StateArray<T>& field) { return field.has_value(); }
  static const Array<T>& get(const StateArray<T>& field) { return field.value(); }
  static Array<T> make(Array<T>&& array) { return std::move(array); }
  static void set(StateArray<T>& field, Array<T>&& made) { field.set_value(std::move(made)); }
  static void reset(StateArray<T>& field) { field.reset(); }
  static const Shape& shape(const StateArray<T>& field) { return field.shape(); }
};

}  // namespace detail

/// The base of the optimizers, each of which brings its Options, the State that it keeps for a parameter, with
/// reserve(options) for all memory that a step needs, and its formula. It holds the parameters wherever their model
/// moves. As a field of a run it is saved and loaded with it:
///
///     groups.0.lr                       the options of each group
///     state.layers.0.weight.exp_avg     the state of each parameter, under the name that it came with, or its number
///
/// It is moved, not copied: a copy of a model has parameters of its own, and needs an optimizer of its own.
template <class T, class Options_, class State_> class GroupedOptimizer : public Optimizer<T> {
 public:
  using Options = Options_;  ///< of a group
  using State = State_;      ///< of a parameter

  /// Adds parameters with options of their own. Throws std::invalid_argument, and adds none, when one is undefined or
  /// there already, and for options outside their range.
  void add_group(Parameters<T> parameters, const Options& options);

  void step() override;
  void zero_grad() override;
  double lr() const override { return groups_.front().lr; }
  void set_lr(double lr) override;

  /// The options of each group, in the order in which they were added.
  const std::vector<Options>& groups() const& { return groups_; }
  /// The same, moved from a temporary.
  std::vector<Options> groups() && { return std::move(groups_); }
  /// What is kept for each parameter.
  const std::map<std::string, State>& state() const& { return state_; }
  /// The same, moved from a temporary.
  std::map<std::string, State> state() && { return std::move(state_); }
  /// What is kept for one of them. Throws std::invalid_argument for a parameter that is not the optimizer's.
  State& state(const Parameter<T>& parameter) &;
  /// The parameters, in the order in which they were added.
  Parameters<T> parameters() const;

  TAPEGRAD_FIELDS(groups_, state_)

 protected:
  /// The first group. Throws as add_group, and when there are no parameters.
  GroupedOptimizer(const char* name, Parameters<T> parameters, const Options& options);

  ~GroupedOptimizer() override = default;
  GroupedOptimizer(GroupedOptimizer&&) = default;
  GroupedOptimizer& operator=(GroupedOptimizer&&) = default;

 private:
  struct Member {
    ParameterHandle<Parameter<T>> parameter;
    std::size_t group;
    State* state;  // in state_, whose elements stay where they are
  };

  /// The optimizer's formula: changes a parameter that has a gradient, and its state. It takes no memory: the value is
  /// nobody else's by then, and the state has reserved its arrays.
  virtual void update(Parameter<T>& parameter, State& state, const Options& options) const = 0;

  const char* name_;  // for messages
  std::vector<Options> groups_;
  std::map<std::string, State> state_;
  std::vector<Member> members_;
};

}  // namespace tapegrad
