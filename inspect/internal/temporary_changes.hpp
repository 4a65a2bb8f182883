/// Changes of parameters that end with a scope, for finite differences. For the library's own sources.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "../../engine/tape/internal/recording.hpp"
#include "../../engine/tape/variable.hpp"

namespace tapegrad::detail {

/// Changes values of parameters until the end of the scope.
class ChangedValues {
 public:
  ChangedValues() = default;
  ~ChangedValues() {
    for (const auto& [parameter, value] : before_) parameter->value = value;
  }
  ChangedValues(const ChangedValues&) = delete;
  ChangedValues& operator=(const ChangedValues&) = delete;

  /// change(numbers) changes a copy of the parameter's value.
  template <class Change> void add(Variable<double>* parameter, Change change) {
    const auto value = make_value<double>(*parameter->value);
    change(value->data());
    before_.emplace_back(parameter, parameter->value);
    parameter->value = value;
  }

 private:
  std::vector<std::pair<Variable<double>*, Value<double>>> before_;
};

/// Puts a parameter's gradient aside until the end of the scope.
template <class T> class GradientAside {
 public:
  explicit GradientAside(const std::shared_ptr<GradSlot<T>>& slot)
      : slot_(slot),
        grad_(slot->grad),
        sweeps_(variable().sweeps),
        last_sweep_(variable().last_sweep),
        parameters_in_last_sweep_(variable().parameters_in_last_sweep) {
    variable().clear_grad();
  }
  ~GradientAside() {
    variable().grad = std::move(grad_);
    variable().sweeps = sweeps_;
    variable().last_sweep = last_sweep_;
    variable().parameters_in_last_sweep = parameters_in_last_sweep_;
  }
  GradientAside(const GradientAside&) = delete;
  GradientAside& operator=(const GradientAside&) = delete;

 private:
  Variable<T>& variable() const { return static_cast<Variable<T>&>(*slot_); }

  std::shared_ptr<GradSlot<T>> slot_;
  std::shared_ptr<Array<T>> grad_;
  SweepCount sweeps_;
  std::uint64_t last_sweep_;
  std::size_t parameters_in_last_sweep_;
};

/// Puts the gradients of all parameters that a tape read aside until the end of the scope.
template <class T> class GradientsAside {
 public:
  explicit GradientsAside(const Nodes<T>& nodes) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(nodes.size()); ++i)
      if (nodes[i].is_parameter) aside_.emplace_back(nodes[i].slot);
  }

 private:
  std::deque<GradientAside<T>> aside_;
};

}  // namespace tapegrad::detail
