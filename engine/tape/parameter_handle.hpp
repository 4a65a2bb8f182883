/// Handles to parameters, for optimizers and reports.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "parameter.hpp"

namespace tapegrad {

/// A handle to a parameter: `handle->grad()`. It shares the parameter's storage, so it stays valid while the model
/// moves, grows or is assigned to. P is Parameter<T> or const Parameter<T>.
template <class P> class ParameterHandle {
  using Parameter_ = std::remove_const_t<P>;
  using Variable = detail::Variable<typename P::value_type>;

 public:
  /// Shares the parameter's storage.
  ParameterHandle(P& parameter) : parameter_(share(parameter)) {}
  /// The same. Throws std::invalid_argument if null.
  ParameterHandle(P* parameter)
      : ParameterHandle(
            parameter ? *parameter
                      : throw std::invalid_argument("[ParameterHandle] expected a parameter, got a null pointer")) {}
  /// Another handle to the same parameter.
  ParameterHandle(const ParameterHandle& other) : parameter_(share(other.parameter_)) {}
  /// A read-only handle from a mutable one.
  ParameterHandle(const ParameterHandle<Parameter_>& other) requires std::is_const_v<P> : parameter_(share(*other)) {}
  /// Refers to the other's parameter from now on.
  ParameterHandle& operator=(const ParameterHandle& other) {
    parameter_.slot_ = other.parameter_.slot_;
    return *this;
  }
  ~ParameterHandle() = default;

  P& operator*() const { return parameter_; }    ///< the parameter
  P* operator->() const { return &parameter_; }  ///< the parameter

  /// The storage, null if undefined; for the library's own sources.
  Variable* variable() const { return static_cast<Variable*>(parameter_.slot_.get()); }

  /// True if two handles refer to the same parameter.
  bool operator==(const ParameterHandle& other) const { return variable() == other.variable(); }

  /// True if this handle is the only owner: the model is gone, or was assigned another parameter.
  bool is_orphaned() const { return parameter_.slot_.use_count() <= 1; }

 private:
  static Parameter_ share(P& parameter) { return Parameter_(std::static_pointer_cast<Variable>(parameter.slot_)); }

  mutable Parameter_ parameter_;  // a second Parameter with the same storage
};

/// A model's parameters.
template <class T> using Parameters = std::vector<ParameterHandle<Parameter<T>>>;

/// A model's parameters with their names in reports and checkpoints, in the order of its fields.
template <class T> using NamedParameters = std::vector<std::pair<std::string, ParameterHandle<Parameter<T>>>>;
/// The same for a const model.
template <class T>
using NamedConstParameters = std::vector<std::pair<std::string, ParameterHandle<const Parameter<T>>>>;

}  // namespace tapegrad
