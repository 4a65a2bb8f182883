/// The bodies of optimizer.hpp and helpers for formulas. For the optimizers' own sources.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "../../engine/array/internal/error.hpp"
#include "../../engine/array/array.hpp"
#include "../../engine/kernels/instruction_sets.hpp"
#include "../optimizer.hpp"
#include "each_once.hpp"

namespace tapegrad {

namespace detail {

inline void require_option(const char* optimizer, const char* name, double value) {
  require(value >= 0 && std::isfinite(value), optimizer, "expected a finite ", name, " of 0 or more, got ", value);
}

/// Throws std::logic_error if a parameter's model is gone, or its value or gradient was resized.
template <class T> void require_in_use(const char* optimizer, const ParameterHandle<Parameter<T>>& handle) {
  const Parameter<T>& parameter = *handle;
  require_usage(!handle.is_orphaned(), optimizer, "expected parameters of an existing model, got ", parameter,
                ", whose model was destroyed or assigned to; create a new optimizer");
  if (!parameter.has_grad()) return;
  const Variable<T>& variable = *handle.variable();
  variable.require_shape(optimizer, "parameter", variable.name.c_str(), parameter.value());
  variable.require_shape(optimizer, "gradient", variable.name.c_str(), parameter.grad());
}

/// The gradient of an element plus weight decay, if any: 0 times an infinite p would be NaN.
template <class T> T decayed(T gradient, T weight_decay, T p) {
  return weight_decay == 0 ? gradient : gradient + weight_decay * p;
}

/// Calls formula(i) for every element of a parameter, vectorized and on several threads.
template <class Formula> void for_each_element(std::size_t size, const Formula& formula) {
  parallel_vectorized(size, [=](std::size_t begin, std::size_t end) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (std::size_t i = begin; i < end; ++i) formula(i);
  });
}

}  // namespace detail

template <class T, class Options, class State>
GroupedOptimizer<T, Options, State>::GroupedOptimizer(const char* name, Parameters<T> parameters,
                                                      const Options& options)
    : name_(name) {
  detail::require(!parameters.empty(), name_, "expected parameters, got none");
  add_group(std::move(parameters), options);
}

template <class T, class Options, class State>
void GroupedOptimizer<T, Options, State>::add_group(Parameters<T> parameters, const Options& options) {
  check_options(name_, options);
  Parameters<T> all = this->parameters();
  all.insert(all.end(), parameters.begin(), parameters.end());
  detail::require_each_once(name_, parameters);  // with indices into the caller's list
  detail::require_each_once(name_, all);
  std::vector<Member> members = members_;
  std::map<std::string, State> added;
  for (const auto& parameter : parameters) {
    std::string name = parameter->name();
    for (std::size_t n = members.size(); name.empty() || state_.contains(name) || added.contains(name); ++n)
      name = std::to_string(n);
    State& state = added.try_emplace(std::move(name), parameter->shape()).first->second;
    members.push_back({parameter, groups_.size(), &state});
  }
  groups_.push_back(options);
  state_.merge(added);  // the states keep their addresses
  members_ = std::move(members);
}

template <class T, class Options, class State>
State& GroupedOptimizer<T, Options, State>::state(const Parameter<T>& parameter) & {
  const auto* const variable = ParameterHandle(parameter).variable();
  const auto is_match = [&](const Member& member) { return member.parameter.variable() == variable; };
  const auto member = std::ranges::find_if(members_, is_match);
  detail::require(member != members_.end(), name_, "expected one of the optimizer's parameters, got ", parameter);
  return *member->state;
}

template <class T, class Options, class State> Parameters<T> GroupedOptimizer<T, Options, State>::parameters() const {
  Parameters<T> all;
  for (const Member& member : members_) all.push_back(member.parameter);
  return all;
}

template <class T, class Options, class State> void GroupedOptimizer<T, Options, State>::step() {
  for (const Options& options : groups_) check_options(name_, options);  // possibly loaded from a file
  for (const Member& member : members_) detail::require_in_use(name_, member.parameter);
  std::size_t size = 0;
  for (const Member& member : members_) {  // allocates everything first: a failure changes nothing
    if (!member.parameter->has_grad()) continue;
    member.parameter->mutable_value();
    member.state->reserve(groups_[member.group]);
    size = std::max(size, memory_size(member.parameter->shape()));
  }
  Array<T> memory(Shape{size});
  for (const Member& member : members_)
    if (member.parameter->has_grad()) update(*member.parameter, *member.state, groups_[member.group], memory.data());
}

template <class T, class Options, class State> void GroupedOptimizer<T, Options, State>::zero_grad() {
  for (const Member& member : members_) member.parameter->zero_grad();
}

template <class T, class Options, class State> double GroupedOptimizer<T, Options, State>::lr() const {
  detail::require_usage(!groups_.empty(), name_, "expected an optimizer with parameters, got a moved-from one");
  return groups_.front().lr;
}

template <class T, class Options, class State> void GroupedOptimizer<T, Options, State>::set_lr(double lr) {
  detail::require_option(name_, "lr", lr);
  for (Options& options : groups_) options.lr = lr;
}

}  // namespace tapegrad
